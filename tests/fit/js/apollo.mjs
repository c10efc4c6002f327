// node apollo.mjs URL TOKEN
import assert from 'node:assert/strict'
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { createClient } from 'graphql-ws'
import WebSocket from 'ws'
import { done, step } from './steps.mjs'
import { CHANGED, READ, UPDATE, late, walk } from './walk.mjs'

const [url, token] = process.argv.slice(2)
const authorization = `Bearer ${token}`
const socket = createClient({
  url: `${url.replace('http', 'ws')}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})
const http = new HttpLink({ uri: `${url}/graphql`, headers: { authorization } })
const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.split(({ operationType }) => operationType === 'subscription', new GraphQLWsLink(socket), http),
})

async function ask(text, variables) {
  const document = gql(text)
  const isQuery = text.startsWith('query')
  const { data } = isQuery
    ? await client.query({ query: document, variables })
    : await client.mutate({ mutation: document, variables })
  return data
}

function follow(text, variables, next, error) {
  const heard = ({ data, error: failed }) => (failed ? error(failed) : next(data))
  const subscription = client.subscribe({ query: gql(text), variables }).subscribe({ next: heard, error })
  return () => subscription.unsubscribe()
}

const user = await walk('apollo', { ask, follow, code: (error) => error.errors?.[0]?.extensions?.code })

await step('store', async () => {
  const cached = () => client.cache.readQuery({ query: gql(READ), variables: { id: user.id } }).user.name
  await ask(READ, { id: user.id })
  await ask(UPDATE, { id: user.id, patch: { name: 'by the answer' } })
  assert.equal(cached(), 'by the answer')
  const { promise, resolve, reject } = Promise.withResolvers()
  const stop = follow(CHANGED, { id: user.id }, resolve, reject)
  const rename = () =>
    fetch(`${url}/users/${user.id}`, {
      method: 'PATCH',
      headers: { authorization, 'content-type': 'application/merge-patch+json' },
      body: '{"name":"by an event"}',
    })
  const timer = setInterval(rename, 300)
  await Promise.race([promise, late()]).finally(() => clearInterval(timer))
  assert.equal(cached(), 'by an event')
  stop()
})
client.stop()
await socket.dispose()
done()
