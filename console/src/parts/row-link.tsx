/** A link to a row by its label; it shows the row's first fields while one points at it or has the focus on it. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ask } from '../api'
import { to } from '../router'
import { collection, slug } from '../shell'
import type { Resource, Row } from '../types'
import { labelOf, writeInput } from './columns'

const WAIT = 350
const FIELDS = 6

/** The fields of a preview: plain ones, the first of them. */
const shownOf = (resource: Resource) => resource.fields.filter((field) => !field.relation && !field.keyOf && !field.writeOnly && field.kind !== 'value' && field.kind !== 'json' && field.name !== 'version').slice(0, FIELDS)

export function RowLink({ row, resource }: { row: Row; resource: Resource }) {
  const [pointed, setPointed] = useState<DOMRect | null>(null)
  const later = useRef(0)
  const id = useId()
  const begin = (element: HTMLElement) => {
    clearTimeout(later.current)
    later.current = window.setTimeout(() => setPointed(element.getBoundingClientRect()), WAIT)
  }
  const end = () => {
    clearTimeout(later.current)
    setPointed(null)
  }
  useEffect(() => () => clearTimeout(later.current), [])
  return (
    <>
      <a
        href={to(`data/${slug(resource)}/${row.id}`)}
        aria-describedby={pointed ? id : undefined}
        onMouseEnter={(event) => begin(event.currentTarget)}
        onFocus={(event) => begin(event.currentTarget)}
        onMouseLeave={end}
        onBlur={end}
        onClick={end}
        onKeyDown={(event) => event.key === 'Escape' && end()}
      >
        {labelOf(row, resource)}
      </a>
      {pointed && <Preview id={id} at={pointed} row={row} resource={resource} />}
    </>
  )
}

function Preview({ id, at, row, resource }: { id: string; at: DOMRect; row: Row; resource: Resource }) {
  const element = useRef<HTMLSpanElement>(null)
  const [found, setFound] = useState<Row | null>(null)
  const fields = shownOf(resource)
  useEffect(() => {
    const stop = new AbortController()
    const names = fields.map((field) => field.name).join(',')
    ask<Row>('GET', `${collection(resource)}/${encodeURIComponent(row.id)}?fields=${encodeURIComponent(names)}`, { signal: stop.signal }).then(setFound, () => undefined)
    return () => stop.abort()
  }, [row.id])
  useEffect(() => {
    if (!element.current) return
    element.current.style.left = `${Math.max(8, Math.min(at.left, innerWidth - element.current.offsetWidth - 8))}px`
    element.current.style.top = `${at.bottom + element.current.offsetHeight + 8 > innerHeight ? at.top - element.current.offsetHeight - 4 : at.bottom + 4}px`
  }, [found])
  return (
    <span role="tooltip" id={id} class="preview" ref={element}>
      <b>{resource.one}</b>
      {found ? (
        fields.map((field) => (
          <span key={field.name}>
            <span class="soft">{field.name}</span> {writeInput(found[field.name]) || 'null'}
          </span>
        ))
      ) : (
        <span class="soft">Loading…</span>
      )}
    </span>
  )
}
