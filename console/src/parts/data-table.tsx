/** The rows of a resource: filter, sort, page, edit in place; changes of others arrive live. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask, events } from '../api'
import { setQuery, usePlace } from '../router'
import { collection, shared } from '../shell'
import { useStore } from '../store'
import type { Resource, Row } from '../types'
import { count } from '../words'
import { columnsOf, type Filters, listUrl, selection } from './columns'
import { Exchange } from './csv'
import { Grid } from './grid'
import { groupable, Groups } from './groups'
import { NothingHere } from './nothing'
import { ActionButtons } from './row-actions'
import { CreateDialog } from './row-form'
import { Empty, Heading, Loading, Problem } from './ui'

const SIZE = 25
const COLUMNS = 14

interface Page {
  data: Row[]
  page: { next: string | null; previous: string | null; total?: number }
}

const filtersOf = (query: URLSearchParams): Filters => ({
  values: Object.fromEntries([...query].filter(([name]) => name.startsWith('f.')).map(([name, value]) => [name.slice(2), value])),
  sort: query.get('sort') ?? '',
  search: query.get('search') ?? '',
  after: query.get('after') ?? '',
  deleted: query.get('deleted') === 'only',
})

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

export function DataTable({ resource }: { resource: Resource }) {
  const { model } = useStore(shared)
  const place = usePlace()
  const text = place.query.toString()
  const filters = useMemo(() => filtersOf(place.query), [text])
  const [page, setPage] = useState<Page | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [total, setTotal] = useState<number | null>(null)
  const [touched, setTouched] = useState<Record<string, 'changed' | 'gone'>>({})
  const [arrived, setArrived] = useState(0)
  const [by, setBy] = useState('')
  const all = useMemo(() => columnsOf(resource), [resource])
  const [wide, setWide] = useState(false)
  const columns = wide ? all : all.slice(0, COLUMNS)
  const key = JSON.stringify(filters)
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
  }, [key])
  useChanges(resource, (kind, id, row) => {
    setPage((now) => {
      const known = now?.data.some((each) => each.id === id)
      if (!known) {
        if (kind === 'CREATED' || kind === 'ENTERED') setArrived((n) => n + 1)
        return now
      }
      const gone = kind === 'DELETED' || kind === 'LEFT'
      const before = now?.data.find((each) => each.id === id)
      if (!gone && before && row && before.version === row.version) return now
      setTouched((all) => ({ ...all, [id]: gone ? 'gone' : 'changed' }))
      return now && row && !gone ? { ...now, data: now.data.map((each) => (each.id === id ? { ...each, ...row } : each)) } : now
    })
  })
  const replace = (row: Row) => setPage((now) => now && { ...now, data: now.data.map((each) => (each.id === row.id ? { ...each, ...row } : each)) })
  const countRows = async () => {
    if (!model) return
    const found = await ask<Page>('GET', listUrl(resource, model, { ...filters, after: '' }, { first: '1', count: 'exact' }))
    setTotal(found.page.total ?? null)
  }
  const filtered = Object.keys(filters.values).length > 0 || filters.search
  const groups = groupable(resource)
  return (
    <>
      <Heading title={resource.many} doc={resource.doc}>
        <ActionButtons resource={resource} on="collection" onDone={() => void load()} />
        {resource.softDelete && (
          <button aria-pressed={Boolean(filters.deleted)} onClick={() => setQuery({ deleted: filters.deleted ? null : 'only', after: null })}>
            Trash
          </button>
        )}
        <Exchange resource={resource} filters={filters} rows={page?.data ?? []} onImported={() => void load()} />
        {resource.verbs.create && (
          <button class="strong" onClick={() => setQuery({ new: '1' })}>
            New {resource.one}
          </button>
        )}
      </Heading>
      <div class="bar">
        <div class="row">
          {resource.search && <SearchBox value={filters.search} onSearch={(words) => setQuery({ search: words, after: null })} />}
          {groups.length > 0 && (
            <label class="row">
              <span class="soft">Group by</span>
              <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>
                <option value="">–</option>
                {groups.map((field) => (
                  <option key={field.name}>{field.name}</option>
                ))}
              </select>
            </label>
          )}
          {all.length > COLUMNS && (
            <button class="quiet" aria-pressed={wide} onClick={() => setWide(!wide)}>
              {wide ? `The first ${COLUMNS} columns` : `All ${all.length} columns`}
            </button>
          )}
          {filtered ? (
            <button class="quiet" onClick={() => setQuery(Object.fromEntries([...place.query.keys()].filter((name) => name.startsWith('f.') || name === 'search').map((name) => [name, null])))}>
              Clear filters
            </button>
          ) : null}
        </div>
        <div class="row" role="status">
          {arrived > 0 && (
            <button class="quiet" onClick={() => void load()}>
              {count(arrived, 'new row')}: show
            </button>
          )}
          {total === null ? (
            <button class="quiet" onClick={() => void countRows()}>
              Count rows
            </button>
          ) : (
            <span class="soft">{count(total, 'row')}</span>
          )}
          <button disabled={!filters.after} onClick={() => history.back()}>
            ← Back
          </button>
          <button disabled={!page?.page.next} onClick={() => setQuery({ after: page?.page.next ?? null }, false)}>
            Next →
          </button>
        </div>
      </div>
      {by && (
        <div class="panel panel-body">
          <Groups resource={resource} filters={filters} by={by} onPick={(value) => setQuery({ [`f.${by}`]: resource.fields.find((field) => field.name === by)?.scalar === 'String' ? `=${value}` : value, after: null })} />
        </div>
      )}
      {error ? <Problem error={error} retry={() => void load()} /> : null}
      {!page && !error && <Loading />}
      {page && (
        <Grid resource={resource} columns={columns} rows={page.data} filters={filters} touched={touched} onRow={replace}>
          {page.data.length === 0 &&
            (filtered || filters.after ? (
              <Empty title="No row matches">
                <p>Change a filter, or clear them all.</p>
              </Empty>
            ) : filters.deleted ? (
              <Empty title="The trash is empty" />
            ) : (
              <NothingHere resource={resource} />
            ))}
        </Grid>
      )}
      {place.query.get('new') && (
        <CreateDialog
          resource={resource}
          onClose={() => setQuery({ new: null })}
          onCreated={() => {
            setQuery({ new: null })
            void load()
          }}
        />
      )}
    </>
  )
}

function SearchBox({ value, onSearch }: { value: string; onSearch: (words: string) => void }) {
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        onSearch(String(new FormData(event.currentTarget).get('words') ?? ''))
      }}
    >
      <input name="words" type="search" aria-label="Search by words" placeholder="Search words…" defaultValue={value} />
    </form>
  )
}
