// node events.mjs URL TOKEN CURSOR: a scenario for the client of graphql-sse in its mode of distinct connections, which
// follows users from a cursor on, makes one, asks, and is refused; prints what it was told.
import { createClient } from 'graphql-sse'

const [url, token, cursor] = process.argv.slice(2)
const client = createClient({ url, headers: { authorization: `Bearer ${token}` }, retryAttempts: 0 })

const all = async (payload) => {
  const results = []
  for await (const result of client.iterate(payload)) results.push(result)
  return results
}

const changes = client.iterate({
  query: 'subscription($after: String) { userChanged(after: $after) { cursor kind user { name email } } }',
  variables: { after: cursor },
})
const first = changes.next()
const made = await all({
  query: 'mutation($input: UserCreate!) { createUser(input: $input) { name } }',
  variables: { input: { name: 'Noa', email: 'noa@example.com' } },
})
const change = (await first).value
const asked = await all({ query: '{ __typename }' })
const refused = await all({ query: '{ nothing }' })
await new Promise((resolve) => setTimeout(resolve, 1200)) // heart-beats come meanwhile, and tell nothing
await changes.return()
const resumed = client.iterate({
  query: 'subscription($after: String) { userChanged(after: $after, kinds: [CREATED]) { user { name } } }',
  variables: { after: cursor },
})
const again = (await resumed.next()).value
await resumed.return()
let forbidden = null
try {
  const stranger = createClient({ url, headers: { authorization: 'Bearer nonsense' }, retryAttempts: 0 })
  for await (const _ of stranger.iterate({ query: '{ __typename }' })) forbidden = 'let in'
} catch (error) {
  forbidden = error.response?.status ?? String(error)
}
client.dispose()
console.log(JSON.stringify({ made, change, asked, refused, again, forbidden }))
