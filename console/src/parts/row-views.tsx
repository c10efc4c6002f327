/** A row as its history, and as GraphQL. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { to } from '../router'
import { collection } from '../shell'
import type { Resource, Row } from '../types'
import { moment } from '../words'
import { labelOf } from './columns'
import { share } from './drafts'
import { targetOf } from './field-input'
import { Code, Loading, Problem } from './ui'

interface Event {
  key: string
  kind: string
  at: string
  then: Row | null
  who: string
}

export function History({ resource, row }: { resource: Resource; row: Row }) {
  const [events, setEvents] = useState<Event[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  useEffect(() => {
    ask<{ data: Record<string, any>[] }>('GET', resource.history ? `${collection(resource)}/${row.id}/history?first=100` : `${collection(resource)}/changes?id=${row.id}&first=100`).then(
      (page) => {
        const found = page.data.map((each) => ({ key: each.cursor ?? each.id, kind: each.kind, at: each.at, then: each[resource.one] ?? null, who: whoMade(each) }))
        setEvents(resource.history ? found : found.toReversed())
      },
      setError,
    )
  }, [row.id, row.version])
  if (error) return <Problem error={error} />
  if (!events) return <Loading />
  if (!events.length) return <p class="soft">The log has no change of this row any more. It keeps changes for a while, as the setting says.</p>
  return (
    <>
      {events.map((event) => (
        <div class="event" key={event.key}>
          <time dateTime={event.at}>{moment(event.at)}</time>
          <span class="badge accent">{event.kind.toLowerCase()}</span>
          <span class="what">
            {event.then ? `version ${event.then.version ?? '?'}: ${labelOf(event.then, resource)}` : ''}
            {event.who && <span class="soft"> · {event.who}</span>}
          </span>
        </div>
      ))}
    </>
  )
}

/** Who made a version, as far as the viewer may know: `0190… by rest, publishPost: a typo`. */
function whoMade(version: Record<string, any>): string {
  const way = [version.channel && `by ${version.channel}`, version.operation].filter(Boolean).join(', ')
  const who = [version.actor, way].filter(Boolean).join(' ')
  return version.reason ? `${who}: ${version.reason}` : who
}

export function AsGraphql({ resource, row }: { resource: Resource; row: Row }) {
  const plain = resource.fields.filter((field) => !field.relation && !field.writeOnly && field.kind !== 'value').map((field) => field.name)
  const related = resource.fields.flatMap((field) => {
    const target = field.relation && !field.relation.many ? targetOf(field) : undefined
    return target ? [`${field.name} {\n      id${target.label ? `\n      ${target.label}` : ''}\n    }`] : []
  })
  const query = `{\n  ${resource.one}(id: "${row.id}") {\n    ${[...plain, ...related].join('\n    ')}\n  }\n}\n`
  return (
    <>
      <Code label="The row as GraphQL" text={query} />
      <p>
        <a href={`${to('request')}#r=${share({ id: '', side: 'graphql', query, variables: '', rest: '', operation: '' })}`} target="_blank" rel="noreferrer">
          Open on the page Request
        </a>
      </p>
    </>
  )
}
