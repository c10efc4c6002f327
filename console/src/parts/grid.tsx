/** The rows of a table, with filters under its head and cells that are edited in place. */
import { setQuery, to } from '../router'
import { slug } from '../shell'
import type { Field, Resource, Row } from '../types'
import { short } from '../words'
import { type CellEditing, type Edit, useCellEditing } from './cell-editing'
import { canEdit, type Filters, isNumeric, labelOf } from './columns'
import { FieldInput, Picker, targetOf, Value } from './field-input'
import { FilterInput } from './filter-input'
import { Merge } from './merge'

type Touched = 'changed' | 'gone' | undefined

interface GridProps {
  resource: Resource
  columns: Field[]
  rows: Row[]
  filters: Filters
  touched: Record<string, 'changed' | 'gone'>
  onRow: (row: Row) => void
  children: preact.ComponentChildren
}

export function Grid({ resource, columns, rows, filters, touched, onRow, children }: GridProps) {
  const editing = useCellEditing(resource, columns, rows, onRow)
  const { conflict, edit } = editing
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label={`Rows of ${resource.many}`}>
      <table class="grid">
        <Head columns={columns} filters={filters} />
        <tbody ref={editing.body}>
          {rows.map((row, r) => (
            <tr key={row.id} class={touched[row.id]} title={touched[row.id] === 'changed' ? 'Changed by someone else just now' : undefined}>
              <td tabIndex={-1} onKeyDown={(event) => editing.move(event, r, 0)}>
                <a href={to(`data/${slug(resource)}/${row.id}`)} aria-label={`Open ${labelOf(row, resource)}, ${short(row.id)}`}>
                  {short(row.id)}
                </a>
              </td>
              {columns.map((field, n) => (
                <Cell key={field.name} resource={resource} field={field} row={row} at={[r, n + 1]} touched={touched[row.id]} editing={editing} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {children}
      {conflict && edit && <Merge resource={resource} conflict={conflict} onClose={editing.keepEditing} onSave={editing.merge} />}
    </div>
  )
}

function Head({ columns, filters }: { columns: Field[]; filters: Filters }) {
  const direction = (field: Field) => (filters.sort === field.name ? 'ascending' : filters.sort === `-${field.name}` ? 'descending' : undefined)
  const next = { ascending: (name: string) => `-${name}`, descending: () => null }
  const sortBy = (field: Field) => {
    const now = direction(field)
    setQuery({ sort: now ? next[now](field.name) : field.name, after: null })
  }
  return (
    <thead>
      <tr>
        <th scope="col">id</th>
        {columns.map((field) => (
          <th key={field.name} scope="col" class={isNumeric(field) ? 'number' : undefined} aria-sort={direction(field)}>
            {field.sort ? (
              <button class="sort" title={field.doc ?? undefined} onClick={() => sortBy(field)}>
                {field.name}
                <span aria-hidden="true">{direction(field) === 'ascending' ? '↑' : direction(field) === 'descending' ? '↓' : ''}</span>
              </button>
            ) : (
              field.name
            )}
          </th>
        ))}
      </tr>
      <tr class="filters">
        <th scope="col">
          <span class="hidden">Filters</span>
        </th>
        {columns.map((field, n) => (
          <th key={field.name} scope="col">
            <FilterInput field={field} value={filters.values[field.name] ?? ''} first={n === 0} />
          </th>
        ))}
      </tr>
    </thead>
  )
}

interface CellProps {
  resource: Resource
  field: Field
  row: Row
  at: [number, number]
  touched: Touched
  editing: CellEditing
}

function Cell({ resource, field, row, at: [r, c], touched, editing }: CellProps) {
  const { edit } = editing
  const now = edit && edit.base.id === row.id && edit.field.name === field.name ? edit : null
  const classes = [isNumeric(field) ? 'number' : '', canEdit(resource, field) ? 'editable' : ''].join(' ').trim()
  return (
    <td tabIndex={r === 0 && c === 1 ? 0 : -1} class={classes || undefined} onDblClick={() => !now && editing.begin(row, field)} onKeyDown={(event) => editing.move(event, r, c)}>
      {now ? (
        <Editor now={now} label={`${field.name} of ${labelOf(row, resource)}`} at={[r, c]} touched={touched} editing={editing} />
      ) : (
        <div class="cell">
          <Value field={field} value={row[field.name]} resource={targetOf(field)} />
        </div>
      )}
    </td>
  )
}

function Editor({ now, label, at: [r, c], touched, editing }: { now: Edit; label: string; at: [number, number]; touched: Touched; editing: CellEditing }) {
  const { field } = now
  const target = targetOf(field)
  const { commit, editKeys, setEdit } = editing
  return (
    <div class="stack" onKeyDown={(event) => field.relation && event.key !== 'Enter' && editKeys(event, now, r, c)}>
      {field.relation && target ? (
        <>
          <Picker target={target} label={field.name} chosen={now.picked} onPick={(picked) => setEdit({ ...now, picked })} />
          <button class="quiet" onClick={() => void commit(now)}>
            Save
          </button>
        </>
      ) : (
        <div class="cell-edit">
          <FieldInput field={field} focus small label={label} text={now.text} invalid={Boolean(now.problem)} onText={(text) => setEdit({ ...now, text })} onKeyDown={(event) => editKeys(event, now, r, c)} />
        </div>
      )}
      {touched === 'changed' && <span class="warn">Someone else changed this row meanwhile.</span>}
      {now.problem && (
        <span class="bad" role="alert">
          {now.problem}
        </span>
      )}
    </div>
  )
}
