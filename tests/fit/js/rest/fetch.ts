// node fetch.ts URL TOKEN, beside schema.d.ts of openapi-typescript
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'
import { done, step } from './steps.mjs'

const [url, token] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl: url!, headers: { Authorization: `Bearer ${token}` } })
type Problem = components['schemas']['Problem']
type User = components['schemas']['User']
type Where = components['schemas']['OrderWhere']

function must<T>({ data, error }: { data?: T; error?: Problem }): T {
  if (error) throw new Error(`${error.code} ${error.detail}`)
  return data!
}

let made: User
await step('create', async () => {
  made = must(await api.POST('/users', { body: { name: 'Fit', email: 'fetch@fit.example' } }))
  const name: string = made.name
  const email: string | null = made.email
  return { name, email }
})
await step('read', async () => must(await api.GET('/users/{id}', { params: { path: { id: made.id } } })).name)
await step('update', async () => {
  const path = { id: made.id }
  const { response } = await api.GET('/users/{id}', { params: { path } })
  const header = { 'If-Match': response.headers.get('etag')! }
  const user = must(await api.PATCH('/users/{id}', { params: { path, header }, body: { name: 'Fitted' } }))
  const late = await api.PATCH('/users/{id}', { params: { path, header }, body: { name: 'Late' } })
  return { name: user.name, late: late.response.status }
})
await step('where', async () => {
  const where: Where = { total: { gte: '100' }, status: { in: ['paid', 'shipped'] } }
  const page = must(await api.GET('/orders', { params: { query: { where: JSON.stringify(where), count: 'exact' } } }))
  return { total: page.page.total, statuses: page.data.map((row) => row.status) }
})
await step('in', async () => {
  const query = { 'status[in]': ['paid' as const, 'shipped' as const] }
  return must(await api.GET('/orders', { params: { query } })).data.map((row) => row.status)
})
await step('sort', async () =>
  must(await api.GET('/orders', { params: { query: { sort: '-total,id' } } })).data.map((row) => row.total))
await step('page', async () => {
  const ids: string[] = []
  for (let after: string | null | undefined; after !== null; ) {
    const page = must(await api.GET('/users', { params: { query: { first: 7, ...(after ? { after } : {}) } } }))
    ids.push(...page.data.map((row) => row.id))
    after = page.page.next
  }
  return ids
})
await step('nested', async () => {
  const query = { first: 3, fields: '*,author(*),comments[first=2](*)' }
  return must(await api.GET('/posts', { params: { query } })).data.map((row) => row.author?.name)
})
await step('error', async () => {
  const { error } = await api.POST('/users', { body: { name: '', email: 'nobody' } })
  return { code: error?.code, pointers: error?.errors?.map((fault) => fault.pointer) }
})
done()
