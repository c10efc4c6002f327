// node genql.ts URL TOKEN: the client that @genql/cli generates, with queries as objects.
// @ts-expect-error: a script without types
import { done, step } from './steps.mjs'
import { createClient, GenqlError } from './api'

const [url, token] = process.argv.slice(2)
const client = createClient({ url: `${url}/graphql`, headers: { authorization: `Bearer ${token}` } })
const code = (error: unknown) => (error instanceof GenqlError ? error.errors[0]?.extensions?.['code'] : error)
function same(one: unknown, other: unknown): void {
  if (one !== other) throw new Error(`${one} is not ${other}`)
}

const input = { name: 'genql', email: 'genql@fit.example' }
const create = () => client.mutation({ createUser: { __args: { input }, id: true, version: true, name: true } })
let made = { id: '', version: 0, name: '' }
await step('create', async () => {
  made = (await create()).createUser
})
await step('read', async () => {
  const { user, node } = await client.query({
    user: { __args: { id: made.id }, name: true, email: true },
    node: { __args: { id: made.id }, __typename: true, on_User: { name: true } },
  })
  same(user?.email, input.email)
  same(node?.__typename, 'User')
})
await step('update', async () => {
  const update = () =>
    client.mutation({
      updateUser: { __args: { id: made.id, patch: { name: 'genql 2' }, ifVersion: made.version }, name: true },
    })
  same((await update()).updateUser.name, 'genql 2')
  same(await update().catch(code), 'PRECONDITION_FAILED')
})
await step('where', async () => {
  const { users } = await client.query({ users: { __args: { where: { name: { startsWith: 'genql' } } }, id: true } })
  same(users.length, 1)
})
await step('sort', async () => {
  const { users } = await client.query({ users: { __args: { orderBy: [{ name: 'DESC' }] }, name: true } })
  const names = users.map((user) => user.name)
  same(names.join(), names.toSorted().toReversed().join())
})
await step('in', async () => {
  const { orders } = await client.query({ orders: { __args: { where: { status: { in: ['paid'] } } }, status: true } })
  same(orders.every((order) => order.status === 'paid'), true)
})
await step('page', async () => {
  const page = async (after?: string | null) =>
    (await client.query({ usersConnection: { __args: { first: 2, after }, nodes: { id: true }, pageInfo: { endCursor: true } } }))
      .usersConnection
  const first = await page()
  const second = await page(first.pageInfo.endCursor)
  same(new Set([...first.nodes, ...second.nodes].map((user) => user.id)).size, 4)
})
await step('nested', async () => {
  const { users } = await client.query({ users: { posts: { __args: { first: 2 }, title: true, comments: { author: { name: true } } } } })
  same(users.some((user) => user.posts.length > 0), true)
})
await step('error', async () => same(await create().catch(code), 'CONFLICT'))
// @ts-expect-error: a field that is not there is a fault of types
void (() => client.query({ users: { nothing: true } }))
done()
