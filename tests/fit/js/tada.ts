// node tada.ts URL TOKEN: documents typed by gql.tada, without generated code for each.
import { initGraphQLTada } from 'gql.tada'
import { print } from 'graphql'
import type { DocumentNode } from 'graphql'
import type { introspection } from './introspection.d.ts'
// @ts-expect-error: a script without types
import { done, step } from './steps.mjs'

const [url, token] = process.argv.slice(2)
const graphql = initGraphQLTada<{
  introspection: introspection
  scalars: { ID: string; DateTime: string; Decimal: string }
}>()
type Of<T> = T extends { __apiType?: (variables: infer V) => infer R } ? [R, V] : never

class Refused extends Error {
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

async function ask<T extends DocumentNode>(document: T, variables: Of<T>[1]): Promise<Of<T>[0]> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: print(document), variables }),
  })
  const { data, errors }: any = await response.json()
  if (errors) throw new Refused(errors[0].extensions.code, errors[0].message)
  return data
}
function same(one: unknown, other: unknown): void {
  if (one !== other) throw new Error(`${one} is not ${other}`)
}

const Create = graphql('mutation Create($input: UserCreate!) { createUser(input: $input) { id version name } }')
const Read = graphql('query Read($id: ID!) { user(id: $id) { name email } node(id: $id) { id ... on User { name } } }')
const Update = graphql(`mutation Update($id: ID!, $patch: UserPatch!, $version: Int) {
  updateUser(id: $id, patch: $patch, ifVersion: $version) { version name } }`)
const Where = graphql('query Where($where: UserWhere) { users(where: $where, orderBy: [{ name: DESC }]) { id name } }')
const Orders = graphql('query Orders($in: [OrderStatus!]) { orders(where: { status: { in: $in } }) { status total } }')
const Page = graphql(`query Page($after: String) { usersConnection(first: 2, after: $after) { nodes { id } pageInfo { endCursor } } }`)
const Nested = graphql('query Nested { users(first: 3) { posts(first: 2) { title comments(first: 2) { author { name } } } } }')

const input = { name: 'tada', email: 'tada@fit.example' }
let made = { id: '', version: 0, name: '' }
await step('create', async () => {
  made = (await ask(Create, { input })).createUser
})
await step('read', async () => same((await ask(Read, { id: made.id })).user?.email, input.email))
await step('update', async () => {
  const variables = { id: made.id, patch: { name: 'tada 2' }, version: made.version }
  same((await ask(Update, variables)).updateUser.name, 'tada 2')
  const refused = await ask(Update, variables).catch((error: Refused) => error.code)
  same(refused, 'PRECONDITION_FAILED')
})
await step('where', async () => same((await ask(Where, { where: { name: { startsWith: 'tada' } } })).users.length, 1))
await step('sort', async () => {
  const names = (await ask(Where, {})).users.map((user) => user.name)
  same(names.join(), names.toSorted().toReversed().join())
})
await step('in', async () => {
  const { orders } = await ask(Orders, { in: ['paid', 'shipped'] })
  same(orders.every((order) => order.status === 'paid' || order.status === 'shipped'), true)
})
await step('page', async () => {
  const first = (await ask(Page, {})).usersConnection
  const second = (await ask(Page, { after: first.pageInfo.endCursor })).usersConnection
  same(new Set([...first.nodes, ...second.nodes].map((user) => user.id)).size, 4)
})
await step('nested', async () => same((await ask(Nested, {})).users.some((user) => user.posts.length > 0), true))
await step('error', async () => same(await ask(Create, { input }).catch((error: Refused) => error.code), 'CONFLICT'))
// @ts-expect-error: a field that is not there is a fault of types
void (async () => (await ask(Read, { id: made.id })).user?.nothing)
done()
