// node run.mjs URL TOKEN ID: Relay's runtime with what relay-compiler has generated, and without React.
import assert from 'node:assert/strict'
import { createClient } from 'graphql-ws'
import runtime from 'relay-runtime'
import WebSocket from 'ws'
import { done, step } from '../steps.mjs'
import { late } from '../walk.mjs'

const { ConnectionHandler, Environment, Network, Observable, RecordSource, Store } = runtime
const { commitMutation, fetchQuery, requestSubscription } = runtime
const document = async (name) => (await import(`./__generated__/${name}.graphql.js`)).default
const [url, token, own] = process.argv.slice(2)
const authorization = `Bearer ${token}`
const warnings = []
console.error = (...said) => warnings.push(said.join(' '))
console.warn = console.error

const socket = createClient({
  url: `${url.replace('http', 'ws')}/graphql`,
  webSocketImpl: WebSocket,
  connectionParams: { authorization },
})
async function send({ text, name }, variables) {
  const answer = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ query: text, variables, operationName: name }),
  })
  return answer.json()
}
const follow = ({ text, name }, variables) =>
  Observable.create((sink) => socket.subscribe({ query: text, variables, operationName: name }, sink))
const environment = new Environment({ network: Network.create(send, follow), store: new Store(new RecordSource()) })

const ask = async (name, variables) =>
  fetchQuery(environment, await document(name), variables, { fetchPolicy: 'network-only' }).toPromise()
const change = async (name, variables) => {
  const mutation = await document(name)
  return new Promise((resolve, reject) =>
    commitMutation(environment, {
      mutation,
      variables,
      onCompleted: (data, errors) => (errors?.length ? reject(errors[0]) : resolve(data)),
      onError: reject,
    }),
  )
}
const record = (id) => environment.getStore().getSource().get(id)
const edges = (parent, key) => {
  let found = []
  environment.commitUpdate((store) => {
    const owner = parent ? store.get(parent) : store.getRoot()
    found = ConnectionHandler.getConnection(owner, key).getLinkedRecords('edges').map((edge) => edge.getLinkedRecord('node').getDataID())
  })
  return found
}
const keep = async (name, variables) => {
  const operation = runtime.createOperationDescriptor(await document(name), variables)
  environment.retain(operation)
}

const user = await step('create', async () => {
  const { createUser } = await change('documentsCreate', { input: { name: 'relay', email: 'relay@fit.example' } })
  assert.equal(createUser.name, 'relay')
  return createUser
})
await step('read', async () => assert.equal((await ask('documentsRead', { id: user.id })).user.email, 'relay@fit.example'))
await step('update', async () => {
  const variables = { id: user.id, patch: { name: 'relay 2' }, version: user.version }
  assert.equal((await change('documentsUpdate', variables)).updateUser.name, 'relay 2')
  await assert.rejects(change('documentsUpdate', variables))
})
await step('where', async () => {
  const { users } = await ask('documentsWhere', { where: { name: { startsWith: 'relay' } } })
  assert.deepEqual(users.map((each) => each.id), [user.id])
})
await step('in', async () => assert.ok((await ask('documentsSome', { in: ['paid'] })).orders.every((each) => each.status === 'paid')))
await step('sort', async () => {
  const names = (await ask('documentsWhere', {})).users.map((each) => each.name)
  assert.deepEqual(names, names.toSorted().toReversed())
})
await step('nested', async () => assert.ok((await ask('documentsNested', {})).users.some((each) => each.posts.length)))
await step('error', async () => {
  const twice = change('documentsCreate', { input: { name: 'relay', email: 'relay@fit.example' } })
  await assert.rejects(twice, (error) => (error.source?.errors ?? [error])[0].extensions.code === 'CONFLICT')
})

const author = (await ask('documentsNested', {})).users.find((each) => each.posts.length === 2)
const writer = author.id
await step('page', async () => {
  await keep('documentsApp', { id: writer })
  await ask('documentsApp', { id: writer })
  const [first, second] = edges(null, 'documents_usersConnection')
  assert.ok(first && second)
  const data = environment.lookup(runtime.createOperationDescriptor(await document('documentsApp'), { id: writer }).fragment).data
  assert.ok(data)
  const cursor = () => {
    let found
    environment.commitUpdate((store) => {
      const page = ConnectionHandler.getConnection(store.getRoot(), 'documents_usersConnection').getLinkedRecord('pageInfo')
      found = { after: page.getValue('endCursor'), more: page.getValue('hasNextPage') }
    })
    return found
  }
  assert.equal(cursor().more, true)
  await ask('documentsUsersPage', { first: 2, after: cursor().after })
  assert.equal(new Set(edges(null, 'documents_usersConnection')).size, 4)
})
await step('refetch', async () => {
  const own = () => edges(writer, 'documents_postsConnection')
  assert.equal(own().length, 1)
  let after
  environment.commitUpdate((store) => {
    after = ConnectionHandler.getConnection(store.get(writer), 'documents_postsConnection').getLinkedRecord('pageInfo').getValue('endCursor')
  })
  await ask('documentsProfilePage', { id: writer, first: 1, after })
  assert.equal(own().length, 2)
  const { nodes } = await ask('documentsAnything', { ids: [writer, own()[0], '00000000-0000-7000-8000-000000000001'] })
  assert.equal(nodes[0].name, author.name)
  assert.equal(nodes[1].author.name, author.name)
  assert.equal(nodes[2], null)
})
await step('viewer', async () => {
  const { viewer } = await ask('documentsApp', { id: own })
  assert.equal(viewer.user.id, own)
  assert.equal(record(own).__typename, 'User')
  assert.ok(record(own).name && !record(own).roles, 'the viewer is not its user')
})
await step('stream', async () => {
  const subscription = await document('documentsChanged')
  const { promise, resolve, reject } = Promise.withResolvers()
  const { dispose } = requestSubscription(environment, { subscription, variables: { id: user.id }, onNext: resolve, onError: reject })
  const rename = () =>
    fetch(`${url}/users/${user.id}`, {
      method: 'PATCH',
      headers: { authorization, 'content-type': 'application/json' },
      body: '{"name":"by an event"}',
    })
  const timer = setInterval(rename, 300)
  const { userChanged } = await Promise.race([promise, late()]).finally(() => clearInterval(timer))
  assert.equal(userChanged.rowId, user.id)
  dispose()
})
await step('store', async () => {
  const { name, __typename, kind } = record(user.id)
  assert.deepEqual([name, __typename, kind], ['by an event', 'User', undefined], 'the change is not the row')
  assert.deepEqual(warnings, [])
})
await socket.dispose()
done()
