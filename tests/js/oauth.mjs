// node oauth.mjs ISSUER ADDRESS < GIVEN: goes through every flow of the service that listens at ADDRESS and is known as
// ISSUER, by oauth4webapi, and prints what it found. GIVEN is {app, backend, redirect, email, password}: a client without
// a secret, one with a secret ({id, secret}), where both are led back, and who signs in.
import * as oauth from 'oauth4webapi'
import { text } from 'node:stream/consumers'

const [issuer, address] = process.argv.slice(2)
const given = JSON.parse(await text(process.stdin))
const here = (url, options) => fetch(String(url).replace(issuer, address), options)
const options = { [oauth.customFetch]: here }

const server = await oauth.processDiscoveryResponse(
  new URL(issuer),
  await oauth.discoveryRequest(new URL(issuer), { algorithm: 'oauth2', ...options }),
)
const app = { client_id: given.app.id }
const backend = { client_id: given.backend.id }
const none = oauth.None()
const basic = oauth.ClientSecretBasic(given.backend.secret)
const post = oauth.ClientSecretPost(given.backend.secret)

// a browser without script: cookies, and forms with their hidden fields

const cookies = new Map()

async function browse(url, form) {
  const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
  const headers = { cookie, ...(form && { origin: issuer }) }
  const response = await here(url, { method: form ? 'POST' : 'GET', headers, body: form, redirect: 'manual' })
  for (const set of response.headers.getSetCookie()) {
    const [name, value] = set.split(';')[0].split(/=(.*)/)
    cookies.set(name, value)
  }
  return response
}

async function submit(url, page, fields) {
  const form = page.match(/<form method="post" action="(\w+)">([^]*?)<\/form>/)
  const hidden = [...form[2].matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
  const unescaped = (value) => value.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  const body = new URLSearchParams(hidden.map(([, name, value]) => [name, unescaped(value)]))
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  const action = new URL(form[1], url)
  const response = await browse(action, body)
  return { response, place: new URL(response.headers.get('location'), action) }
}

async function authorize(client, decision) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const url = new URL(server.authorization_endpoint)
  url.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: given.redirect,
    response_type: 'code',
    scope: 'read write',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  let page = await (await browse(url)).text()
  if (page.includes('action="login"')) {
    const { place } = await submit(url, page, { email: given.email, password: given.password })
    page = await (await browse(place)).text()
  }
  const { place } = await submit(url, page, { decision })
  return { verifier, parameters: oauth.validateAuthResponse(server, client, place, state) } // checks `iss` and `state`
}

async function failure(work) {
  try {
    await work()
    return null
  } catch (error) {
    return error.error ?? error.code
  }
}

// tokens

async function exchange(client, auth) {
  const { verifier, parameters } = await authorize(client, 'allow')
  const response = await oauth.authorizationCodeGrantRequest(
    server, client, auth, parameters, given.redirect, verifier, options,
  )
  return { parameters, verifier, tokens: await oauth.processAuthorizationCodeResponse(server, client, response) }
}

async function refresh(client, auth, token) {
  const response = await oauth.refreshTokenGrantRequest(server, client, auth, token, options)
  return oauth.processRefreshTokenResponse(server, client, response)
}

async function own(auth) {
  const response = await oauth.clientCredentialsGrantRequest(server, backend, auth, { scope: 'read' }, options)
  return oauth.processClientCredentialsResponse(server, backend, response)
}

async function introspect(token) {
  const response = await oauth.introspectionRequest(server, backend, basic, token, options)
  return oauth.processIntrospectionResponse(server, backend, response)
}

async function revoke(client, auth, token) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, auth, token, options))
}

async function used(token) {
  const query = JSON.stringify({ query: '{ __typename }' })
  const asked = [
    ['GET', `${issuer}/orders?first=1`, undefined],
    ['POST', `${issuer}/graphql`, query],
  ]
  const found = []
  for (const [method, url, body] of asked) {
    const headers = new Headers(body && { 'content-type': 'application/json' })
    try {
      found.push((await oauth.protectedResourceRequest(token, method, new URL(url), headers, body, options)).status)
    } catch (error) {
      found.push(error.cause[0].parameters.error)
    }
  }
  return found
}

const first = await exchange(app, none)
const request = new Request(`${issuer}/orders`, { headers: { authorization: `Bearer ${first.tokens.access_token}` } })
const claims = await oauth.validateJwtAccessToken(server, request, 'diptych', options)
const second = await refresh(app, none, first.tokens.refresh_token)
const found = {
  issuer: server.issuer,
  denied: await failure(() => authorize(app, 'deny')),
  subject: claims.sub,
  scope: first.tokens.scope,
  used: await used(second.access_token),
  introspected: (await introspect(second.access_token)).active,
  reuse: await failure(() => refresh(app, none, first.tokens.refresh_token)),
  after_reuse: [...(await used(first.tokens.access_token)), ...(await used(second.access_token))],
  family: await failure(() => refresh(app, none, second.refresh_token)),
  introspected_after_reuse: (await introspect(second.access_token)).active,
}

const confidential = await exchange(backend, basic)
found.code_reuse = await failure(async () => {
  const { parameters, verifier } = confidential
  const response = await oauth.authorizationCodeGrantRequest(
    server, backend, post, parameters, given.redirect, verifier, options,
  )
  await oauth.processAuthorizationCodeResponse(server, backend, response)
})
found.after_code_reuse = await used(confidential.tokens.access_token)

for (const [name, auth] of Object.entries({ basic, post })) {
  const token = (await own(auth)).access_token
  const before = await used(token)
  await revoke(backend, auth, token)
  found[name] = { before, after: await used(token), active: (await introspect(token)).active }
}
found.wrong_secret = await failure(() => own(oauth.ClientSecretBasic('wrong')))
console.log(JSON.stringify(found))
