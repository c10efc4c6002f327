/** Rows grouped by a field, as small bars. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { collection, shared } from '../shell'
import { useStore } from '../store'
import type { Field, Resource } from '../types'
import { type Filters, whereOf } from './columns'
import { Loading, Problem } from './ui'

const SHOWN = 12

export const groupable = (resource: Resource): Field[] =>
  resource.fields.filter((field) => !field.relation && !field.keyOf && field.filter?.includes('eq') && field.name !== 'id' && (field.kind === 'enum' || field.scalar === 'Boolean' || field.scalar === 'String' || field.scalar === 'Date' || field.scalar === 'DateTime'))

export function Groups({ resource, filters, by, onPick }: { resource: Resource; filters: Filters; by: string; onPick: (value: string) => void }) {
  const { model } = useStore(shared)
  const [groups, setGroups] = useState<Record<string, unknown>[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const field = resource.fields.find((each) => each.name === by)
  const period = field?.scalar === 'DateTime' || field?.scalar === 'Date'
  const where = model ? JSON.stringify(whereOf(resource, model, filters)) : ''
  useEffect(() => {
    const query = new URLSearchParams({ by: period ? `${by}:month` : by, first: String(SHOWN), sort: period ? `-${by}` : '-count', fields: `${by},count` })
    if (where && where !== 'null') query.set('where', where)
    if (filters.search) query.set('search', filters.search)
    setError(null)
    const stop = new AbortController()
    ask<{ data: Record<string, unknown>[] }>('GET', `${collection(resource)}/groups?${query}`, { signal: stop.signal }).then(
      (page) => setGroups(page.data),
      (reason) => !stop.signal.aborted && setError(reason),
    )
    return () => stop.abort()
  }, [by, where, filters.search])
  if (error) return <Problem error={error} />
  if (!groups) return <Loading />
  const most = Math.max(1, ...groups.map((group) => Number(group['count'])))
  return (
    <div class="bars" role="group" aria-label={`Rows by ${by}`}>
      {groups.map((group, n) => {
        const text = group[by] === null ? 'null' : String(group[by])
        const name = period ? text.slice(0, 7) : text
        return [
          <span key={`n${n}`} class="name">
            {period ? name : <button class="quiet" onClick={() => onPick(text)}>{name}</button>}
          </span>,
          <svg key={`b${n}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect width={(100 * Number(group['count'])) / most} height="10" />
          </svg>,
          <span key={`c${n}`}>{Number(group['count']).toLocaleString('en')}</span>,
        ]
      })}
    </div>
  )
}
