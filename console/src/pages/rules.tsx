/** Rules: who may do what, in words; and why one row is as it is for someone. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { AskWhy } from '../parts/why'
import { Empty, Heading, Loading, Problem } from '../parts/ui'
import { setQuery, usePlace } from '../router'
import { shared } from '../shell'
import { useStore } from '../store'
import type { RuleBook, RuleCell } from '../types'
import { fileLine } from '../words'

export function RulesPage() {
  const { model } = useStore(shared)
  const place = usePlace()
  const [book, setBook] = useState<RuleBook | null>(null)
  const [error, setError] = useState<unknown>(null)
  useEffect(() => {
    ask<RuleBook>('GET', '/console/api/rules').then(setBook, setError)
  }, [])
  const of = place.query.get('of') ?? book?.resources[0]?.name ?? ''
  const resource = book?.resources.find((each) => each.name === of)
  return (
    <>
      <Heading title="Rules" doc="Who may do what with which rows and fields, as the model declares it.">
        {book && (
          <select data-filter="" aria-label="Resource" value={of} onChange={(event) => setQuery({ of: event.currentTarget.value })}>
            {book.resources.map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        )}
      </Heading>
      {error ? <Problem error={error} /> : !book ? <Loading /> : !resource ? <Empty title="No rules to show" /> : <Matrix book={book} resource={resource} />}
      {model && book && <Ask />}
    </>
  )
}

function Matrix({ book, resource }: { book: RuleBook; resource: RuleBook['resources'][number] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Rules of ${resource.name}`}>
      <table class="grid matrix">
        <thead>
          <tr>
            <th scope="col">{resource.name}</th>
            {book.roles.map((role) => (
              <th key={role} scope="col">
                {role}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {resource.rows.map((row) => (
            <tr key={`${row.verb ?? ''}.${row.field ?? ''}`}>
              <th scope="row">
                {row.field && <span>{row.field} </span>}
                {row.verb && <span class={row.field ? 'soft' : ''}>{row.verb}</span>}
              </th>
              {book.roles.map((role) => (
                <td key={role}>{row.cells[role] ? <Cell cell={row.cells[role]} /> : <span class="soft">–</span>}</td>
              ))}
            </tr>
          ))}
          {Object.entries(resource.moves ?? {}).map(([field, moves]) => (
            <tr key={`moves.${field}`}>
              <th scope="row">{field} moves</th>
              <td colSpan={book.roles.length}>{moves.join(' · ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ cell }: { cell: RuleCell }) {
  if (cell.words === 'as the row') return <span class="soft">as the row</span>
  const words = { always: 'always', never: 'never', when: 'when' }[cell.allowed]
  return (
    <div class="stack">
      <b class={`verdict ${cell.allowed}`}>{words}</b>
      {cell.words && cell.words !== words && <span>{cell.words}</span>}
      {fileLine(cell) && <span class="soft mono">{fileLine(cell)}</span>}
    </div>
  )
}

function Ask() {
  return (
    <section class="card" aria-labelledby="why-title">
      <h2 id="why-title">Which rule decides?</h2>
      <AskWhy />
    </section>
  )
}
