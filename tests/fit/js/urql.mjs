// node urql.mjs URL TOKEN: urql with the normalised cache, and its pagination of Relay.
import assert from 'node:assert/strict'
import { Client, fetchExchange, subscriptionExchange } from '@urql/core'
import { cacheExchange } from '@urql/exchange-graphcache'
import { relayPagination } from '@urql/exchange-graphcache/extras'
import { getIntrospectionQuery } from 'graphql'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { done, step } from './steps.mjs'
import { CHANGED, PAGE, READ, UPDATE, late, walk } from './walk.mjs'

const [url, token] = process.argv.slice(2)
const authorization = `Bearer ${token}`
const headers = { authorization, 'content-type': 'application/json' }
const warnings = []
console.warn = (...said) => warnings.push(said.join(' '))
const described = await fetch(`${url}/graphql`, {
  method: 'POST',
  headers,
  body: JSON.stringify({ query: getIntrospectionQuery() }),
})
const schema = (await described.json()).data
const socket = createClient({
  url: `${url.replace('http', 'ws')}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
  lazyCloseTimeout: 1_000,
})
const client = new Client({
  url: `${url}/graphql`,
  preferGetMethod: false,
  fetchOptions: { headers: { authorization } },
  exchanges: [
    cacheExchange({ schema, resolvers: { Query: { usersConnection: relayPagination() } } }),
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe({ ...request, query: request.query ?? '' }, sink) }),
      }),
    }),
  ],
})

async function ask(text, variables) {
  const { data, error } = await (text.startsWith('query')
    ? client.query(text, variables).toPromise()
    : client.mutation(text, variables).toPromise())
  if (error) throw error
  return data
}

function follow(text, variables, next, error) {
  const heard = ({ data, error: failed }) => (failed ? error(failed) : next(data))
  return client.subscription(text, variables).subscribe(heard).unsubscribe
}

const code = (error) => error.graphQLErrors?.[0]?.extensions?.code
const paged = new Client({ url: `${url}/graphql`, preferGetMethod: false, fetchOptions: { headers: { authorization } }, exchanges: [fetchExchange] })
const user = await walk('urql', {
  // the pagination of the cache joins pages, so single ones are asked for beside it
  ask: async (text, variables) => (text === PAGE ? (await paged.query(text, variables).toPromise()).data : ask(text, variables)),
  follow,
  code,
})

await step('store', async () => {
  const cached = () => client.readQuery(READ, { id: user.id })?.data.user.name
  await ask(READ, { id: user.id })
  await ask(UPDATE, { id: user.id, patch: { name: 'by the answer' } })
  assert.equal(cached(), 'by the answer')
  const { promise, resolve, reject } = Promise.withResolvers()
  const stop = follow(CHANGED, { id: user.id }, resolve, reject)
  const rename = () => fetch(`${url}/users/${user.id}`, { method: 'PATCH', headers, body: '{"name":"by an event"}' })
  const timer = setInterval(rename, 300)
  await Promise.race([promise, late()]).finally(() => clearInterval(timer))
  assert.equal(cached(), 'by an event')
  stop()
  const first = (await ask(PAGE, {})).usersConnection
  const both = (await ask(PAGE, { after: first.pageInfo.endCursor })).usersConnection
  assert.equal(both.edges.length, 4, 'the cache joins both pages')
  assert.deepEqual(warnings, [])
})
await socket.dispose()
done()
