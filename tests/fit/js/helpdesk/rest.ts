// node rest.ts URL TOKEN PROJECT ORGANISATION, beside schema.d.ts of openapi-typescript
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

const [url, token, project, organisation] = process.argv.slice(2) as [string, string, string, string]
const api = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } })

function must<T>({ data, error }: { data?: T; error?: components['schemas']['Problem'] }): T {
  if (error) throw new Error(`${error.code} ${error.detail} ${JSON.stringify(error.errors)}`)
  return data!
}

const nested = must(
  await api.POST('/tickets', {
    params: { query: { fields: '*,comments(body)' } },
    body: { projectId: project, title: 'By REST', comments: { create: [{ body: 'One' }, { body: 'Two' }] } },
  }),
)
const numbered: number = nested.number
const label = { organisationId: organisation, name: 'billing' }
const [first, second] = [
  await api.POST('/labels', { params: { query: { by: 'organisationId_name' } }, body: label }),
  await api.POST('/labels', { params: { query: { by: 'organisationId_name' } }, body: label }),
]
const query = { by: 'state', fields: 'state,count' }
const groups = must(await api.GET('/{collection}/groups', { params: { path: { collection: 'tickets' }, query } }))
console.log(
  JSON.stringify({
    numbered,
    comments: (nested as { comments?: { body: string }[] }).comments?.map((each) => each.body),
    statuses: [first.response.status, second.response.status],
    same: must(first).id === must(second).id,
    groups: groups.data.map((each) => [each['state'], each.count]),
  }),
)
