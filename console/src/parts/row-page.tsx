/** One row: its fields, related rows, history, both styles, and why it is as it is. */
import { useEffect, useState } from 'preact/hooks'
import { ask, call, failure } from '../api'
import { go, to } from '../router'
import { current } from '../session'
import { collection, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Field, Model, Resource, Row, Why } from '../types'
import { moment, short } from '../words'
import { canEdit, columnsOf, keyOf, labelOf, readInput, selection, writeInput } from './columns'
import { FieldInput, Picker, targetOf, Value } from './field-input'
import { type Conflict, Merge } from './merge'
import { ActionButtons, DeleteDialog, Moves } from './row-actions'
import { save, sentence } from './saving'
import { share } from './drafts'
import { WhyLines } from './why'
import { Code, Dialog, Heading, Loading, Problem, say, Tabs } from './ui'

const TABS = [
  { id: 'fields', title: 'Fields' },
  { id: 'relations', title: 'Relations' },
  { id: 'history', title: 'History' },
  { id: 'json', title: 'As JSON' },
  { id: 'graphql', title: 'As GraphQL' },
]

export function RowPage({ resource, id }: { resource: Resource; id: string }) {
  const { model } = useStore(shared)
  const [row, setRow] = useState<Row | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [tab, setTab] = useState('fields')
  const [deleting, setDeleting] = useState(false)
  const [why, setWhy] = useState<{ verb: string; field?: string } | null>(null)
  const [conflict, setConflict] = useState<Conflict | null>(null)
  const [problem, setProblem] = useState('')
  const load = () => {
    if (!model) return
    ask<Row>('GET', `${collection(resource)}/${encodeURIComponent(id)}?fields=${encodeURIComponent(selection(resource, model))}`).then((found) => (setRow(found), setError(null)), setError)
  }
  useEffect(load, [id])
  const change = async (changes: Record<string, unknown>, base = row): Promise<string | null> => {
    if (!model || !base) return null
    const saved = await save(resource, model, base, changes)
    if (saved.kind === 'conflict') {
      setConflict(saved.conflict)
      return 'Someone else changed this row meanwhile.'
    }
    if (saved.kind === 'refused') return sentence(saved.failure)
    setRow((now) => ({ ...now, ...saved.row }))
    setConflict(null)
    say(`Saved as version ${saved.row.version}.`)
    return null
  }
  /** What was chosen in the merge view; the row as it is now is shown whether that works or not. */
  const resolve = async (changes: Record<string, unknown>, theirs: Row) => {
    setRow(theirs)
    setConflict(null)
    const problem = Object.keys(changes).length ? await change(changes, theirs) : null
    setProblem(problem ?? '')
  }
  const move = (changes: Record<string, unknown>) => void change(changes).then((problem) => setProblem(problem ?? ''))
  const relations = resource.fields.filter((field) => field.relation?.many && targetOf(field))
  const tabs = TABS.filter((each) => (each.id === 'relations' ? relations.length > 0 : each.id === 'history' ? resource.changes : true))
  return (
    <>
      <p class="crumbs">
        <a href={to('data')}>Data</a> / <a href={to(`data/${slug(resource)}`)}>{resource.many}</a>
      </p>
      {error ? <Problem error={error} retry={load} /> : !row || !model ? <Loading /> : (
        <>
          <Heading title={labelOf(row, resource)} doc={`${resource.one} ${row.id}`}>
            <Moves resource={resource} row={row} onMove={move} />
            <ActionButtons resource={resource} row={row} on="row" onDone={load} />
            <button onClick={() => setWhy({ verb: 'read' })}>Why?</button>
            {resource.verbs.delete && (
              <button class="danger" onClick={() => setDeleting(true)}>
                Delete
              </button>
            )}
          </Heading>
          {problem && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          <section class="panel">
            <Tabs label="Row" tabs={tabs} at={tab} onChange={setTab}>
              {tab === 'fields' && <Fields resource={resource} row={row} onSave={change} onWhy={(field) => setWhy({ verb: 'read', field })} />}
              {tab === 'relations' && relations.map((field) => <Related key={field.name} resource={resource} row={row} field={field} model={model} />)}
              {tab === 'history' && <History resource={resource} row={row} />}
              {tab === 'json' && <Code label="The row as JSON" text={JSON.stringify(row, null, 2)} />}
              {tab === 'graphql' && <AsGraphql resource={resource} row={row} />}
            </Tabs>
          </section>
          {deleting && <DeleteDialog resource={resource} row={row} onClose={() => setDeleting(false)} onDeleted={() => go(`data/${slug(resource)}`)} />}
          {why && <WhyDialog resource={resource} row={row} asked={why} onClose={() => setWhy(null)} />}
          {conflict && <Merge resource={resource} conflict={conflict} onClose={() => setConflict(null)} onSave={(changes) => void resolve(changes, conflict.theirs)} />}
        </>
      )}
    </>
  )
}

function Fields({ resource, row, onSave, onWhy }: { resource: Resource; row: Row; onSave: (change: Record<string, unknown>) => Promise<string | null>; onWhy: (field: string) => void }) {
  const [editing, setEditing] = useState('')
  return (
    <dl class="fields">
      {columnsOf(resource).map((field) => [
        <dt key={`t-${field.name}`} title={field.doc ?? undefined}>
          {field.name}
          <br />
          <span class="soft mono">{field.type}</span>
        </dt>,
        <dd key={`d-${field.name}`}>
          {editing === field.name ? (
            <EditField resource={resource} row={row} field={field} onSave={onSave} onClose={() => setEditing('')} />
          ) : (
            <>
              <span class="grow">
                <Value field={field} value={row[field.name]} resource={targetOf(field)} />
                {row[field.name] === null && field.nullable && (
                  <button class="quiet why-mark" onClick={() => onWhy(field.name)}>
                    why?
                  </button>
                )}
              </span>
              {canEdit(resource, field) && (
                <button class="quiet" aria-label={`Edit ${field.name}`} onClick={() => setEditing(field.name)}>
                  Edit
                </button>
              )}
            </>
          )}
        </dd>,
      ])}
    </dl>
  )
}

function EditField({ resource, row, field, onSave, onClose }: { resource: Resource; row: Row; field: Field; onSave: (change: Record<string, unknown>) => Promise<string | null>; onClose: () => void }) {
  const [text, setText] = useState(writeInput(row[field.name]))
  const [picked, setPicked] = useState<Row | null>((field.relation ? (row[field.name] as Row | null) : null) ?? null)
  const [problem, setProblem] = useState('')
  const target = targetOf(field)
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    try {
      const key = field.relation ? keyOf(resource, field) : field
      if (!key) return
      const found = await onSave({ [key.name]: field.relation ? (picked?.id ?? null) : readInput(field, text) })
      if (found) setProblem(found)
      else onClose()
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <form class="row grow" onSubmit={submit}>
      <div class="grow">
        {target ? <Picker target={target} label={field.name} chosen={picked} onPick={setPicked} /> : <FieldInput field={field} focus label={field.name} text={text} onText={setText} onKeyDown={(event) => event.key === 'Escape' && onClose()} />}
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
      </div>
      <button class="strong">Save</button>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
    </form>
  )
}

function Related({ resource, row, field, model }: { resource: Resource; row: Row; field: Field; model: Model }) {
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
  const columns = columnsOf(target).filter((each) => each.name !== field.relation?.inverse).slice(0, 5)
  const link = async (other: Row | null, connect: boolean) => {
    if (!other) return
    const answer = await call(connect ? 'PUT' : 'DELETE', `${collection(resource)}/${row.id}/${field.name}/${other.id}`)
    if (answer.status >= 400) say(failure(answer).message)
    load()
  }
  return (
    <section class="form-field">
      <h2>
        {field.name} <span class="soft">{field.doc}</span>
      </h2>
      {error ? <Problem error={error} /> : !rows ? <Loading /> : rows.length === 0 ? <p class="soft">None.</p> : (
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
                {field.relation?.through && <th scope="col">link</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((each) => (
                <tr key={each.id}>
                  <td>
                    <a href={to(`data/${slug(target)}/${each.id}`)} aria-label={`Open ${labelOf(each, target)}`}>
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
                  {field.relation?.through && (
                    <td>
                      <button class="quiet" onClick={() => void link(each, false)}>
                        Unlink
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {more && field.relation?.inverse && (
        <p>
          <a href={to(`data/${slug(target)}?f.${field.relation.inverse}=${row.id}`)}>All of them</a>
        </p>
      )}
      {field.relation?.through && <Picker target={target} label={`Link ${target.one}`} chosen={null} onPick={(other) => void link(other, true)} />}
    </section>
  )
}

function History({ resource, row }: { resource: Resource; row: Row }) {
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
            <span class="badge accent">{event.kind}</span>
            <span class="what">{then ? `version ${then.version ?? '?'}: ${labelOf(then, resource)}` : ''}</span>
          </div>
        )
      })}
    </>
  )
}

function AsGraphql({ resource, row }: { resource: Resource; row: Row }) {
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

const VERBS = ['read', 'update', 'delete']

function WhyDialog({ resource, row, asked, onClose }: { resource: Resource; row: Row; asked: { verb: string; field?: string }; onClose: () => void }) {
  const { as } = useStore(current)
  const { model } = useStore(shared)
  const [verb, setVerb] = useState(asked.verb)
  const [field, setField] = useState(asked.field ?? '')
  const [role, setRole] = useState(as ?? '')
  const [why, setWhy] = useState<Why | null>(null)
  const [error, setError] = useState<unknown>(null)
  useEffect(() => {
    setWhy(null)
    setError(null)
    const stop = new AbortController()
    const body = { resource: resource.name, id: row.id, verb, ...(field ? { field } : {}), ...(role ? { as: role } : {}) }
    ask<Why>('POST', '/console/api/why', { body, signal: stop.signal }).then(setWhy, (reason) => !stop.signal.aborted && setError(reason))
    return () => stop.abort()
  }, [verb, field, role])
  return (
    <Dialog title="Why?" onClose={onClose} wide>
      <div class="row">
        <label class="stack">
          <span>May</span>
          <select value={role} onChange={(event) => setRole(event.currentTarget.value)}>
            <option value="">I</option>
            {(model?.roles ?? []).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="stack">
          <span>do</span>
          <select value={verb} onChange={(event) => setVerb(event.currentTarget.value)}>
            {VERBS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="stack">
          <span>with</span>
          <select value={field} onChange={(event) => setField(event.currentTarget.value)}>
            <option value="">the row</option>
            {resource.fields.filter((each) => !each.relation).map((each) => (
              <option key={each.name}>{each.name}</option>
            ))}
          </select>
        </label>
      </div>
      {error ? <Problem error={error} /> : !why ? <Loading /> : <WhyLines why={why} />}
    </Dialog>
  )
}
