/** The rows of a relation to many, as a small table on the page of a row. */
import { useEffect, useState } from 'preact/hooks'
import { ask, call, failure } from '../api'
import { to } from '../router'
import { collection, slug } from '../shell'
import type { Field, Model, Resource, Row } from '../types'
import { short } from '../words'
import { columnsOf, labelOf, selection } from './columns'
import { Picker, targetOf, Value } from './field-input'
import { Loading, Problem, say } from './ui'

const COLUMNS = 5

export function Related({ resource, row, field, model }: { resource: Resource; row: Row; field: Field; model: Model }) {
  const target = targetOf(field)
  const [rows, setRows] = useState<Row[] | null>(null)
  const [more, setMore] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const load = () => {
    if (!target) return
    ask<{ data: Row[]; page: { next: string | null } }>('GET', `${collection(resource)}/${row.id}/${field.name}?first=5&fields=${encodeURIComponent(selection(target, model))}`).then((page) => (setRows(page.data), setMore(Boolean(page.page.next))), setError)
  }
  useEffect(load, [row.id])
  if (!target) return null
  const link = async (other: Row | null, connect: boolean) => {
    if (!other) return
    const answer = await call(connect ? 'PUT' : 'DELETE', `${collection(resource)}/${row.id}/${field.name}/${other.id}`)
    if (answer.status >= 400) say(failure(answer).message)
    load()
  }
  const unlink = field.relation?.through ? (other: Row) => void link(other, false) : null
  return (
    <section class="form-field">
      <h2>
        {field.name} <span class="soft">{field.doc}</span>
      </h2>
      {error ? <Problem error={error} /> : !rows ? <Loading /> : rows.length === 0 ? <p class="soft">None that you may see.</p> : <RelatedTable field={field} target={target} rows={rows} unlink={unlink} />}
      {more && field.relation?.inverse && (
        <p>
          <a href={to(`data/${slug(target)}?f.${field.relation.inverse}=${row.id}`)}>All of them</a>
        </p>
      )}
      {field.relation?.through && <Picker target={target} label={`Link ${target.one}`} chosen={null} onPick={(other) => void link(other, true)} />}
    </section>
  )
}

function RelatedTable({ field, target, rows, unlink }: { field: Field; target: Resource; rows: Row[]; unlink: ((row: Row) => void) | null }) {
  const columns = columnsOf(target).filter((each) => each.name !== field.relation?.inverse).slice(0, COLUMNS)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={field.name}>
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">id</th>
            {columns.map((each) => (
              <th key={each.name} scope="col">
                {each.name}
              </th>
            ))}
            {unlink && <th scope="col">link</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((each) => (
            <tr key={each.id}>
              <td>
                <a href={to(`data/${slug(target)}/${each.id}`)} aria-label={`Open ${labelOf(each, target)}, ${short(each.id)}`}>
                  {short(each.id)}
                </a>
              </td>
              {columns.map((column) => (
                <td key={column.name}>
                  <div class="cell">
                    <Value field={column} value={each[column.name]} resource={targetOf(column)} />
                  </div>
                </td>
              ))}
              {unlink && (
                <td>
                  <button class="quiet" onClick={() => unlink(each)}>
                    Unlink
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
