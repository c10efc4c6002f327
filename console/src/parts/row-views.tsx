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

export function History({ resource, row }: { resource: Resource; row: Row }) {
  const [events, setEvents] = useState<{ cursor: string; kind: string; at: string }[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  useEffect(() => {
    ask<{ data: Record<string, any>[] }>('GET', `${collection(resource)}/changes?id=${row.id}&first=100`).then((page) => setEvents(page.data.toReversed() as any), setError)
  }, [row.id, row.version])
  if (error) return <Problem error={error} />
  if (!events) return <Loading />
  if (!events.length) return <p class="soft">The log has no change of this row any more. It keeps changes for a while, as the setting says.</p>
  return (
    <>
      {events.map((event) => {
        const then = (event as Record<string, any>)[resource.one] as Row | null
        return (
          <div class="event" key={event.cursor}>
            <time dateTime={event.at}>{moment(event.at)}</time>
            <span class="badge accent">{event.kind.toLowerCase()}</span>
            <span class="what">{then ? `version ${then.version ?? '?'}: ${labelOf(then, resource)}` : ''}</span>
          </div>
        )
      })}
    </>
  )
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
