/** The rows of a resource: filter, sort, page, edit in place; changes of others arrive live. */
import { useMemo, useState } from 'preact/hooks'
import { setQuery, usePlace } from '../router'
import type { Resource } from '../types'
import { count } from '../words'
import { columnsOf, type Filters } from './columns'
import { Exchange } from './csv'
import { Grid } from './grid'
import { groupable, Groups } from './groups'
import { NothingHere } from './nothing'
import { ActionButtons } from './row-actions'
import { CreateDialog } from './row-form'
import { Empty, Heading, Loading, Problem } from './ui'
import { type Rows, useRows } from './use-rows'

const COLUMNS = 14

const filtersOf = (query: URLSearchParams): Filters => ({
  values: Object.fromEntries([...query].filter(([name]) => name.startsWith('f.')).map(([name, value]) => [name.slice(2), value])),
  sort: query.get('sort') ?? '',
  search: query.get('search') ?? '',
  after: query.get('after') ?? '',
  deleted: query.get('deleted') === 'only',
})

const isFiltered = (filters: Filters) => Object.keys(filters.values).length > 0 || Boolean(filters.search)

export function DataTable({ resource }: { resource: Resource }) {
  const place = usePlace()
  const text = place.query.toString()
  const filters = useMemo(() => filtersOf(place.query), [text])
  const rows = useRows(resource, filters)
  const [by, setBy] = useState('')
  const [wide, setWide] = useState(false)
  const all = useMemo(() => columnsOf(resource), [resource])
  const pick = (value: string) => setQuery({ [`f.${by}`]: resource.fields.find((field) => field.name === by)?.scalar === 'String' ? `=${value}` : value, after: null })
  const created = () => {
    setQuery({ new: null })
    rows.load()
  }
  return (
    <>
      <TableHeading resource={resource} filters={filters} rows={rows} />
      <div class="bar">
        <div class="row">
          {resource.search && <SearchBox value={filters.search} onSearch={(words) => setQuery({ search: words, after: null })} />}
          <GroupBy resource={resource} by={by} onChange={setBy} />
          {all.length > COLUMNS && (
            <button class="quiet" aria-pressed={wide} onClick={() => setWide(!wide)}>
              {wide ? `The first ${COLUMNS} columns` : `All ${all.length} columns`}
            </button>
          )}
          {isFiltered(filters) && (
            <button class="quiet" onClick={() => setQuery(Object.fromEntries([...place.query.keys()].filter((name) => name.startsWith('f.') || name === 'search').map((name) => [name, null])))}>
              Clear filters
            </button>
          )}
        </div>
        <Paging filters={filters} rows={rows} />
      </div>
      {by && (
        <div class="panel panel-body">
          <Groups resource={resource} filters={filters} by={by} onPick={pick} />
        </div>
      )}
      {rows.error ? <Problem error={rows.error} retry={rows.load} /> : null}
      {!rows.page && !rows.error && <Loading />}
      {rows.page && (
        <Grid resource={resource} columns={wide ? all : all.slice(0, COLUMNS)} rows={rows.page.data} filters={filters} touched={rows.touched} onRow={rows.replace}>
          {rows.page.data.length === 0 && <Nothing resource={resource} filters={filters} />}
        </Grid>
      )}
      {place.query.get('new') && <CreateDialog resource={resource} onClose={() => setQuery({ new: null })} onCreated={created} />}
    </>
  )
}

function TableHeading({ resource, filters, rows }: { resource: Resource; filters: Filters; rows: Rows }) {
  return (
    <Heading title={resource.many} doc={resource.doc}>
      <ActionButtons resource={resource} on="collection" onDone={rows.load} />
      {resource.softDelete && (
        <button aria-pressed={Boolean(filters.deleted)} onClick={() => setQuery({ deleted: filters.deleted ? null : 'only', after: null })}>
          Trash
        </button>
      )}
      <Exchange resource={resource} filters={filters} rows={rows.page?.data ?? []} onImported={rows.load} />
      {resource.verbs.create && (
        <button class="strong" onClick={() => setQuery({ new: '1' })}>
          New {resource.one}
        </button>
      )}
    </Heading>
  )
}

function GroupBy({ resource, by, onChange }: { resource: Resource; by: string; onChange: (by: string) => void }) {
  const groups = groupable(resource)
  if (!groups.length) return null
  return (
    <label class="row">
      <span class="soft">Group by</span>
      <select value={by} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">–</option>
        {groups.map((field) => (
          <option key={field.name}>{field.name}</option>
        ))}
      </select>
    </label>
  )
}

function Paging({ filters, rows }: { filters: Filters; rows: Rows }) {
  const next = rows.page?.page.next ?? null
  return (
    <div class="row" role="status">
      {rows.arrived > 0 && (
        <button class="quiet" onClick={rows.load}>
          {count(rows.arrived, 'new row')}: show
        </button>
      )}
      {rows.total === null ? (
        <button class="quiet" onClick={rows.countRows}>
          Count rows
        </button>
      ) : (
        <span class="soft">{count(rows.total, 'row')}</span>
      )}
      <button disabled={!filters.after} onClick={() => history.back()}>
        ← Back
      </button>
      <button disabled={!next} onClick={() => setQuery({ after: next }, false)}>
        Next →
      </button>
    </div>
  )
}

/** What an empty table says. */
function Nothing({ resource, filters }: { resource: Resource; filters: Filters }) {
  if (isFiltered(filters) || filters.after) {
    return (
      <Empty title="No row matches">
        <p>Change a filter, or clear them all.</p>
      </Empty>
    )
  }
  return filters.deleted ? <Empty title="The trash is empty" /> : <NothingHere resource={resource} />
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
