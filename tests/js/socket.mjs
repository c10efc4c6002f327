// node socket.mjs URL TOKEN CURSOR: a scenario for the client of graphql-ws, which follows users from a cursor on,
// makes one, asks, and is refused; prints what it was told.
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'

const [url, token, cursor] = process.argv.slice(2)
const seen = { pings: 0, closed: [] }
const client = createClient({
  url,
  webSocketImpl: WebSocket,
  connectionParams: { authorization: `Bearer ${token}` },
  lazy: false,
  retryAttempts: 0,
  on: {
    ping: (received, payload) => { if (received && payload?.cursor) seen.pings += 1 },
    closed: (event) => seen.closed.push(event.code),
  },
})

const one = (payload) => new Promise((resolve) => {
  const results = []
  client.subscribe(payload, {
    next: (result) => results.push(result),
    error: (error) => resolve({ error }),
    complete: () => resolve({ results }),
  })
})

const changes = client.iterate({
  query: 'subscription($after: String) { userChanged(after: $after) { cursor kind user { name email } } }',
  variables: { after: cursor },
})
const first = changes.next()
const made = await one({
  query: 'mutation($input: UserCreate!) { createUser(input: $input) { name } }',
  variables: { input: { name: 'Nia', email: 'nia@example.com' } },
})
const change = (await first).value
const asked = await one({ query: '{ __typename }' })
const refused = await one({ query: '{ nothing }' })
while (seen.pings === 0) await new Promise((resolve) => setTimeout(resolve, 20))
await changes.return()
const resumed = client.iterate({
  query: 'subscription($after: String) { userChanged(after: $after, kinds: [CREATED]) { user { name } } }',
  variables: { after: cursor },
})
const again = (await resumed.next()).value
await client.dispose()
while (seen.closed.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
console.log(JSON.stringify({ made, change, asked, refused, again, closed: seen.closed }))
