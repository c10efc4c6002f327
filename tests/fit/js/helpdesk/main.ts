import { graphql } from './gql/gql.js'
import type { TypedDocumentString } from './gql/graphql.js'

const [url, token, project, organisation] = process.argv.slice(2) as [string, string, string, string]

async function execute<R, V>(document: TypedDocumentString<R, V>, variables: V): Promise<R> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query: document.toString(), variables }),
  })
  const { data, errors } = await response.json()
  if (errors) throw new Error(JSON.stringify(errors))
  return data
}

const Report = graphql(`
  mutation Report($input: TicketCreate!) {
    createTicket(input: $input) { number comments(first: 5) { body } }
  }
`)
const Mark = graphql(`
  mutation Mark($input: LabelCreate!) {
    upsertLabel(by: organisationId_name, input: $input) { id version }
  }
`)
const Count = graphql(`query Count { ticketsGroups(by: [{ state: VALUE }]) { state count } }`)

const comments = { create: [{ body: 'One' }, { body: 'Two' }] }
const { createTicket } = await execute(Report, { input: { projectId: project, title: 'By GraphQL', comments } })
const input = { organisationId: organisation, name: 'refunds' }
const [first, second] = [await execute(Mark, { input }), await execute(Mark, { input })]
const { ticketsGroups } = await execute(Count, {})
const numbered: number | undefined = createTicket?.number
console.log(
  JSON.stringify({
    numbered,
    comments: createTicket?.comments?.map((each) => each?.body),
    same: first.upsertLabel?.id === second.upsertLabel?.id,
    groups: ticketsGroups?.map((each) => [each?.state, each?.count]),
  }),
)
