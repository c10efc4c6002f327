// node apollo.mjs URL AGAIN TOKEN: a scenario for @apollo/client with its link for persisted queries, by GET where it can.
// AGAIN is the service as it is after a restart, when it remembers nothing. Prints each step: what came of it, and which
// requests it took.
import { createHash } from 'node:crypto'
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client'
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries'

const [url, again, token] = process.argv.slice(2)
let sent = []
let address = url

const counted = async (uri, options) => {
  const parsed = new URL(uri)
  const asked = options.body ? JSON.parse(options.body) : Object.fromEntries(parsed.searchParams)
  const answer = await fetch(address + parsed.pathname + parsed.search, options)
  const kind = answer.headers.get('content-type').split(';')[0]
  sent.push([options.method, asked.query ? 'text' : 'hash', answer.status, kind, answer.headers.get('cache-control')])
  return answer
}

const made = (headers) =>
  new ApolloClient({
    cache: new InMemoryCache(),
    defaultOptions: { query: { fetchPolicy: 'no-cache' }, mutate: { fetchPolicy: 'no-cache' } },
    link: ApolloLink.from([
      new PersistedQueryLink({
        sha256: (text) => createHash('sha256').update(text).digest('hex'),
        useGETForHashedQueries: true,
      }),
      new HttpLink({ uri: 'http://service/graphql', fetch: counted, headers }),
    ]),
  })

const steps = {}
const step = async (name, work) => {
  sent = []
  const result = await work().then(
    ({ data }) => data,
    (error) => ({ error: error.name, codes: error.errors?.map((each) => each.extensions.code) }),
  )
  steps[name] = { result, sent }
}

const admin = made({ authorization: `Bearer ${token}` })
const nobody = made({})
const users = gql`query Users($first: Int!) { users(first: $first, orderBy: [{ email: ASC }]) { name email } }`
const names = gql`query Names { users(first: 2, orderBy: [{ name: ASC }]) { name } }`
const create = gql`mutation Create($input: UserCreate!) { createUser(input: $input) { name } }`
const wrong = gql`query Wrong { users { nothing } }`
const ask = (client, query, variables) => () => client.query({ query, variables })
const add = (name) => () =>
  admin.mutate({ mutation: create, variables: { input: { name, email: `${name}@example.com` } } })

await step('first', ask(admin, users, { first: 1 }))
await step('second', ask(admin, users, { first: 1 }))
await step('other variables', ask(admin, users, { first: 2 }))
await step('another', ask(nobody, names))
await step('a stranger', ask(nobody, users, { first: 1 }))
await step('create', add('noa'))
await step('create again', add('nia'))
await step('conflict', add('nia'))
await step('wrong', ask(admin, wrong))
await step('wrong again', ask(admin, wrong))
address = again
await step('restarted', ask(admin, users, { first: 1 }))
await step('once more', ask(admin, users, { first: 1 }))
sent = []
const once = (variables) => admin.query({ query: users, variables, context: { queryDeduplication: false } })
const many = await Promise.all(Array.from({ length: 40 }, (_, n) => once({ first: 1 + (n % 3) })))
steps.many = { result: many.map(({ data }) => data.users.length), sent }
admin.stop()
nobody.stop()
console.log(JSON.stringify(steps))
