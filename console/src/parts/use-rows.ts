/** The rows of a page of a table, kept up to date by the changes of others. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ask, events } from '../api'
import { collection, shared } from '../shell'
import { useStore } from '../store'
import type { Resource, Row } from '../types'
import { type Filters, listUrl, selection } from './columns'

const SIZE = 25

export interface Page {
  data: Row[]
  page: { next: string | null; previous: string | null; total?: number }
}

export type Touched = Record<string, 'changed' | 'gone'>

export interface Rows {
  page: Page | null
  error: unknown
  total: number | null
  touched: Touched
  /** New rows that are not shown. */
  arrived: number
  load: () => void
  countRows: () => void
  replace: (row: Row) => void
}

/** Changes of others, while the table is shown. */
function useChanges(resource: Resource, onChange: (kind: string, id: string, row: Row | null) => void): void {
  const { model } = useStore(shared)
  const latest = useRef(onChange)
  latest.current = onChange
  useEffect(() => {
    if (!resource.changes || !model) return
    const stop = new AbortController()
    const fields = encodeURIComponent(selection(resource, model))
    void (async () => {
      for await (const event of events('GET', `${collection(resource)}/changes?fields=${fields}`, { signal: stop.signal })) {
        if (event.name === 'message') latest.current(event.data.kind, event.data.rowId, event.data[resource.one] ?? null)
      }
    })().catch(() => undefined)
    return () => stop.abort()
  }, [resource.name])
}

const withRow = (page: Page, row: Row): Page => ({ ...page, data: page.data.map((each) => (each.id === row.id ? { ...each, ...row } : each)) })

export function useRows(resource: Resource, filters: Filters): Rows {
  const { model } = useStore(shared)
  const [page, setPage] = useState<Page | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [total, setTotal] = useState<number | null>(null)
  const [touched, setTouched] = useState<Touched>({})
  const [arrived, setArrived] = useState(0)
  const load = async (signal?: AbortSignal) => {
    if (!model) return
    try {
      const found = await ask<Page>('GET', listUrl(resource, model, filters, { first: String(SIZE) }), signal ? { signal } : {})
      if (signal?.aborted) return
      setPage(found)
      setError(null)
      setTouched({})
      setArrived(0)
    } catch (reason) {
      if (!signal?.aborted) setError(reason)
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    setTotal(null)
    void load(stop.signal)
    return () => stop.abort()
  }, [JSON.stringify(filters)])
  useChanges(resource, (kind, id, row) => {
    setPage((now) => {
      const before = now?.data.find((each) => each.id === id)
      if (!now || !before) {
        if (kind === 'CREATED' || kind === 'ENTERED') setArrived((n) => n + 1)
        return now
      }
      const gone = kind === 'DELETED' || kind === 'LEFT'
      if (!gone && row && before.version === row.version) return now
      setTouched((all) => ({ ...all, [id]: gone ? 'gone' : 'changed' }))
      return row && !gone ? withRow(now, row) : now
    })
  })
  const countRows = async () => {
    if (!model) return
    const found = await ask<Page>('GET', listUrl(resource, model, { ...filters, after: '' }, { first: '1', count: 'exact' }))
    setTotal(found.page.total ?? null)
  }
  const replace = (row: Row) => setPage((now) => now && withRow(now, row))
  return { page, error, total, touched, arrived, load: () => void load(), countRows: () => void countRows(), replace }
}
