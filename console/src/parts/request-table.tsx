/** The last requests as a table, each a link to the page Request; and their statements, the most expensive first. */
import { to } from '../router'
import type { Recent } from '../types'
import { bytes, count, milliseconds, short, timeOfDay } from '../words'
import { share } from './drafts'

const COLUMNS = ['at', 'request', 'status', 'time', 'price', 'size', 'caller']
const SLOW = 100

/** The request on the page Request, where its rules, price and statement are; null if its text was not kept. */
function link(request: Recent): string | null {
  const empty = { id: '', variables: '', operation: '', query: '', rest: '' }
  if (request.style === 'rest') return `${to('request')}#r=${share({ ...empty, side: 'rest', rest: `${request.method} ${request.path}` })}`
  if (!request.document) return null
  return `${to('request')}#r=${share({ ...empty, side: 'graphql', query: request.document, operation: request.name })}`
}

function Name({ request }: { request: Recent }) {
  const href = link(request)
  const words =
    request.style === 'rest' ? (
      `${request.method} ${request.path}`
    ) : (
      <>
        <span class="badge">{request.kind || 'GraphQL'}</span> {[request.name, request.fields.join(', ')].filter(Boolean).join(': ') || 'unnamed'}
      </>
    )
  return href ? <a href={href}>{words}</a> : <span title="Its text has values that cannot be left out, so it was not kept.">{words}</span>
}

export function RequestTable({ requests }: { requests: Recent[] }) {
  if (!requests.length) return <p class="soft">There are none among the last 500.</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Requests">
      <table class="grid">
        <thead>
          <tr>
            {COLUMNS.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {requests.map((each) => (
            <Line key={each.n} request={each} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Line({ request }: { request: Recent }) {
  const isBad = request.status >= 400 || Boolean(request.code)
  return (
    <tr>
      <td>{timeOfDay(request.at)}</td>
      <td>
        <Name request={request} />
      </td>
      <td>
        <span class={isBad ? 'badge bad' : 'badge good'}>{request.status}</span> {request.code && <code>{request.code}</code>}
      </td>
      <td class="number">
        {request.stream ? <span class="soft">open {Math.round(request.ms / 1000)} s</span> : <span class={request.ms >= SLOW ? 'badge warn' : undefined}>{milliseconds(request.ms)}</span>}
      </td>
      <td class="number">{request.price ?? ''}</td>
      <td class="number">{request.bytes ? bytes(request.bytes) : ''}</td>
      <td title={request.viewer ?? undefined}>{short(request.viewer ?? '')}</td>
    </tr>
  )
}

export function SlowestStatements({ requests }: { requests: Recent[] }) {
  const groups = new Map<string, Recent[]>()
  for (const each of requests) if (each.statement && !each.stream) groups.set(each.statement, [...(groups.get(each.statement) ?? []), each])
  const worst = [...groups]
    .map(([statement, all]) => ({ statement, all, total: all.reduce((sum, each) => sum + each.ms, 0), most: Math.max(...all.map((each) => each.ms)) }))
    .sort((a, b) => b.total - a.total)
    .slice(0, 20)
  if (!worst.length) return <p class="soft">No request has run a statement.</p>
  return (
    <>
      {worst.map(({ statement, all, total, most }) => (
        <div class="rule" key={statement}>
          <strong>
            {milliseconds(total)} in {count(all.length, 'request')}, {milliseconds(most)} at most
          </strong>
          {all[0] && (
            <p>
              <Name request={all[0]} />
            </p>
          )}
          <pre>{statement}</pre>
        </div>
      ))}
    </>
  )
}
