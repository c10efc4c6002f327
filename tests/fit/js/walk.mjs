// One walk through the scenarios of a GraphQL client, for clients that take documents as text.
//     await walk('apollo', { ask(text, variables) → data, follow(text, variables, onData) → stop, code(error) → string })
import assert from 'node:assert/strict'
import { step } from './steps.mjs'

export const CREATE = 'mutation Create($input: UserCreate!) { createUser(input: $input) { __typename id version name email } }'
export const READ = 'query Read($id: ID!) { user(id: $id) { __typename id name email } }'
export const UPDATE = `mutation Update($id: ID!, $patch: UserPatch!, $version: Int) {
  updateUser(id: $id, patch: $patch, ifVersion: $version) { __typename id version name } }`
export const WHERE = 'query Where($where: UserWhere) { users(where: $where) { __typename id name } }'
export const IN = 'query In($in: [OrderStatus!]) { orders(where: { status: { in: $in } }) { __typename id status } }'
export const SORT = 'query Sort { users(first: 5, orderBy: [{ name: DESC }]) { __typename id name } }'
export const PAGE = `query Page($after: String) { usersConnection(first: 2, after: $after) {
  __typename edges { __typename cursor node { __typename id name } } pageInfo { __typename hasNextPage endCursor } } }`
export const NESTED = `query Nested { users(first: 3) { __typename id name posts(first: 2) { __typename id title
  comments(first: 2) { __typename id body author { __typename id name } } } } }`
export const CHANGED = `subscription Changed($id: ID) { userChanged(id: $id) {
  __typename cursor kind rowId user { __typename id name } } }`

export async function walk(tag, { ask, follow, code }) {
  const email = `${tag}@fit.example`
  const user = await step('create', async () => {
    const { createUser } = await ask(CREATE, { input: { name: tag, email } })
    assert.equal(createUser.name, tag)
    return createUser
  })
  await step('read', async () => assert.equal((await ask(READ, { id: user.id })).user.email, email))
  await step('update', async () => {
    const variables = { id: user.id, patch: { name: `${tag} 2` }, version: user.version }
    assert.equal((await ask(UPDATE, variables)).updateUser.name, `${tag} 2`)
    await assert.rejects(ask(UPDATE, variables), (error) => code(error) === 'PRECONDITION_FAILED')
  })
  await step('where', async () => {
    const { users } = await ask(WHERE, { where: { name: { startsWith: tag } } })
    assert.deepEqual(users.map((each) => each.id), [user.id])
  })
  await step('in', async () => {
    const { orders } = await ask(IN, { in: ['paid', 'shipped'] })
    assert.deepEqual(new Set(orders.map((each) => each.status)), new Set(['paid', 'shipped']))
  })
  await step('sort', async () => {
    const names = (await ask(SORT, {})).users.map((each) => each.name)
    assert.deepEqual(names, names.toSorted().toReversed())
  })
  await step('page', async () => {
    const first = (await ask(PAGE, {})).usersConnection
    const second = (await ask(PAGE, { after: first.pageInfo.endCursor })).usersConnection
    const ids = [...first.edges, ...second.edges].map((each) => each.node.id)
    assert.equal(new Set(ids).size, 4)
  })
  await step('nested', async () => {
    const { users } = await ask(NESTED, {})
    assert.ok(users.some((each) => each.posts.some((post) => post.comments[0]?.author.name)))
  })
  await step('error', async () => {
    await assert.rejects(ask(CREATE, { input: { name: tag, email } }), (error) => code(error) === 'CONFLICT')
  })
  if (follow) {
    await step('stream', async () => {
      const { promise, resolve, reject } = Promise.withResolvers()
      const stop = follow(CHANGED, { id: user.id }, resolve, reject)
      const timer = setInterval(() => ask(UPDATE, { id: user.id, patch: { name: `${tag} 3` } }).catch(reject), 300)
      try {
        const { userChanged } = await Promise.race([promise, late()])
        assert.equal(userChanged.kind, 'UPDATED')
        assert.equal(userChanged.rowId, user.id)
        assert.equal(userChanged.user.name, `${tag} 3`)
      } finally {
        clearInterval(timer)
        stop()
      }
    })
  }
  return user
}

export const late = () => new Promise((_, reject) => setTimeout(() => reject(new Error('nothing came')), 20_000).unref())
