// The peer in Node: mercurius on Fastify, as its documentation says it is fastest: graphql-jit from the first request, loaders
// without their cache (which serialises every key; keys are made distinct here), routes with schemas of what they answer.
//
//     node mercurius.mjs --database sqlite:///… --port 8003 --viewer <user id>
//
// One process. It checks no token; the viewer is a constant, as on the floor.
import Fastify from 'fastify'
import { GraphQLScalarType } from 'graphql'
import mercurius from 'mercurius'
import { v7 } from 'uuid'
import { database, port, viewer } from './arguments.mjs'

const { open } = await import(database.startsWith('sqlite:') ? './sqlite.mjs' : './postgres.mjs')
const db = open(database, viewer)

const schema = `
  scalar Decimal
  type Query {
    user(id: ID!): User
    posts(first: Int = 20, after: String): [Post!]!
  }
  type Mutation { createOrder(input: OrderCreate!): Order! }
  type User { id: ID! name: String! email: String posts(first: Int = 20): [Post!]! }
  type Post { id: ID! title: String! author: User comments(first: Int = 20): [Comment!]! }
  type Comment { body: String! author: User }
  type Order { id: ID! status: String! total: Decimal! currency: String! customer: User }
  input OrderCreate { customerId: ID! total: Decimal! currency: String! = "EUR" note: String }
`

function decimal (value) {
  if (typeof value !== 'string' || !/^\d{1,10}\.\d{2}$/.test(value)) throw new TypeError(`no decimal: ${value}`)
  return value
}

const resolvers = {
  Decimal: new GraphQLScalarType({ name: 'Decimal', serialize: String, parseValue: decimal }),
  Query: {
    user: (_, { id }) => db.user(id),
    posts: (_, { first, after }) => db.posts(first, after)
  },
  Mutation: { createOrder: (_, { input }) => db.create(v7(), input) }
}

const uncached = loader => ({ loader, opts: { cache: false } })

// The user that a column of each row names.
const userBy = column => uncached(async queries => {
  const found = new Map()
  for (const user of await db.users([...new Set(queries.map(({ obj }) => obj[column]))])) if (user) found.set(user.id, user)
  return queries.map(({ obj }) => found.get(obj[column]))
})

// The first rows of each parent; all ask for as many, since they stand at one place of a document.
const rowsOf = read => uncached(async queries => {
  const found = new Map(queries.map(({ obj }) => [obj.id, []]))
  for (const row of await read([...found.keys()], queries[0].params.first)) found.get(row.parent).push(row)
  return queries.map(({ obj }) => found.get(obj.id))
})

const loaders = {
  User: { posts: rowsOf(db.postsOf) },
  Post: { comments: rowsOf(db.commentsOf), author: userBy('author_id') },
  Comment: { author: userBy('author_id') },
  Order: { customer: userBy('customer_id') }
}

const text = { type: 'string' }
const maybe = { type: 'string', nullable: true }
const object = properties => ({ type: 'object', properties })
const RESOURCE = { id: text, version: { type: 'integer' }, createdAt: text, updatedAt: text }
const USER = object({ ...RESOURCE, name: text, email: maybe })
const ORDER = object({
  ...RESOURCE, customerId: text, status: text, total: text, currency: text, note: maybe, internalNote: maybe
})
const PAGE = object({
  data: { type: 'array', items: ORDER }, page: object({ size: { type: 'integer' }, next: maybe, previous: maybe })
})
const MADE = object({ id: text, status: text, total: text, currency: text, customer: object({ name: text }) })
const NEW = {
  type: 'object',
  required: ['customerId', 'total'],
  additionalProperties: false,
  properties: {
    customerId: { type: 'string', maxLength: 36 },
    total: { type: 'string', pattern: '^[0-9]{1,10}[.][0-9]{2}$' },
    currency: { type: 'string', pattern: '^[A-Z]{3}$', default: 'EUR' },
    note: { type: 'string', nullable: true, maxLength: 500 }
  }
}
const ASKED = object({ first: { type: 'integer', minimum: 1, maximum: 100, default: 20 }, after: text })

const app = Fastify({ logger: false })
app.register(mercurius, { schema, resolvers, loaders, jit: 1, graphiql: false })

app.get('/health/ready', async () => ({}))

app.get('/users/:id', { schema: { response: { 200: USER } } }, async (request, reply) => {
  const user = await db.fullUser(request.params.id)
  return user ?? reply.code(404).send({})
})

app.get('/orders', { schema: { querystring: ASKED, response: { 200: PAGE } } }, async (request, reply) => {
  const { first, after } = request.query
  const rows = await db.orders(first + 1, after)
  const data = rows.slice(0, first)
  const next = rows.length > first ? data.at(-1).id : null
  if (next) reply.header('link', `</orders?first=${first}&after=${next}>; rel="next"`)
  return { data, page: { size: first, next, previous: after && data.length ? data[0].id : null } }
})

app.post('/orders', { schema: { body: NEW, response: { 201: MADE } } }, async (request, reply) => {
  const order = await db.create(v7(), request.body)
  const [customer] = await db.users([order.customer_id])
  reply.code(201).header('location', `/orders/${order.id}`)
  return { ...order, customer }
})

await app.listen({ host: '127.0.0.1', port })
