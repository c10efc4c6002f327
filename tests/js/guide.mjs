// node guide.mjs FOLDER < GIVEN: runs the app of docs/how-to/sign-in.md, which is in FOLDER, and signs a user in to it; then
// by its provider for Auth.js. GIVEN is {issuer, id, secret, port, user}. Prints what the user sees.
import { Auth, skipCSRFCheck } from '@auth/core'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { browser } from './browser.mjs'

const folder = pathToFileURL(`${process.argv[2]}/`)
const { issuer, id, secret, port, user } = JSON.parse(await text(process.stdin))
Object.assign(process.env, { ISSUER: issuer, CLIENT_ID: id, CLIENT_SECRET: secret, PORT: port })
const { authorize } = browser(issuer, fetch)

const { default: server } = await import(new URL('app.mjs', folder))
const home = `http://localhost:${port}`
const begun = await fetch(home, { redirect: 'manual' })
const cookie = begun.headers.get('set-cookie').split(';')[0]
const back = await authorize(new URL(begun.headers.get('location')), user)
const done = await fetch(back, { headers: { cookie }, redirect: 'manual' })
const seen = await (await fetch(home, { headers: { cookie } })).text()
const injected = await fetch(back, { headers: { cookie: 'session=x' }, redirect: 'manual' })
server.close()
server.closeAllConnections()

const { provider } = await import(new URL('auth.mjs', folder))
const config = { basePath: '/auth', trustHost: true, secret: 's'.repeat(32), skipCSRFCheck, providers: [provider] }
const cookies = new Map()
async function ask(path, options = {}) {
  const headers = { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') }
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const request = new Request(new URL(path, home), { ...options, headers: { ...headers, ...type } })
  const response = await Auth(request, config)
  for (const set of response.headers.getSetCookie()) {
    const [name, value] = set.split(';')[0].split(/=(.*)/)
    cookies.set(name, value)
  }
  return response
}
const sent = await ask('/auth/signin/diptych', { method: 'POST', body: new URLSearchParams() })
await ask(await authorize(new URL(sent.headers.get('location')), user))
const session = await (await ask('/auth/session')).json()
console.log(JSON.stringify({ done: done.status, seen, injected: injected.status, session: session.user }))
