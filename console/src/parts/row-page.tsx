/** One row: its fields, related rows, history, both styles, and why it is as it is. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { go, to } from '../router'
import { collection, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Resource, Row } from '../types'
import { labelOf, selection } from './columns'
import { targetOf } from './field-input'
import { type Conflict, Merge } from './merge'
import { ActionButtons, DeleteDialog, Moves } from './row-actions'
import { save, sentence } from './saving'
import { Fields } from './row-fields'
import { Related } from './row-related'
import { AsGraphql, History } from './row-views'
import { AskWhy } from './why'
import { Code, Dialog, Heading, Loading, Problem, say, Tabs } from './ui'

const TABS = [
  { id: 'fields', title: 'Fields' },
  { id: 'relations', title: 'Relations' },
  { id: 'history', title: 'History' },
  { id: 'json', title: 'As JSON' },
  { id: 'graphql', title: 'As GraphQL' },
]

interface Editing {
  row: Row | null
  error: unknown
  problem: string
  conflict: Conflict | null
  load: () => void
  change: (changes: Record<string, unknown>) => Promise<string | null>
  move: (changes: Record<string, unknown>) => void
  resolve: (changes: Record<string, unknown>, theirs: Row) => Promise<void>
  keep: () => void
}

/** The row, and its changes: each is saved if nobody else has changed the row meanwhile. */
function useRow(resource: Resource, id: string): Editing {
  const { model } = useStore(shared)
  const [row, setRow] = useState<Row | null>(null)
  const [error, setError] = useState<unknown>(null)
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
    setProblem((Object.keys(changes).length ? await change(changes, theirs) : null) ?? '')
  }
  const move = (changes: Record<string, unknown>) => void change(changes).then((found) => setProblem(found ?? ''))
  return { row, error, problem, conflict, load, change: (changes) => change(changes), move, resolve, keep: () => setConflict(null) }
}

export function RowPage({ resource, id }: { resource: Resource; id: string }) {
  const editing = useRow(resource, id)
  const { row, error, problem, conflict } = editing
  const [deleting, setDeleting] = useState(false)
  const [why, setWhy] = useState<{ verb: string; field?: string } | null>(null)
  if (!row || error) {
    return (
      <>
        <Crumbs resource={resource} />
        {error ? <Problem error={error} retry={editing.load} /> : <Loading />}
      </>
    )
  }
  return (
    <>
      <Crumbs resource={resource} />
      <Heading title={labelOf(row, resource)} doc={`${resource.one} ${row.id}`}>
        <Moves resource={resource} row={row} onMove={editing.move} />
        <ActionButtons resource={resource} row={row} on="row" onDone={editing.load} />
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
      <RowTabs resource={resource} row={row} onSave={editing.change} onWhy={(field) => setWhy({ verb: 'read', field })} />
      {deleting && <DeleteDialog resource={resource} row={row} onClose={() => setDeleting(false)} onDeleted={() => go(`data/${slug(resource)}`)} />}
      {why && (
        <Dialog title="Why?" onClose={() => setWhy(null)} wide>
          <AskWhy resource={resource.name} id={row.id} verb={why.verb} field={why.field ?? ''} />
        </Dialog>
      )}
      {conflict && <Merge resource={resource} conflict={conflict} onClose={editing.keep} onSave={(changes) => void editing.resolve(changes, conflict.theirs)} />}
    </>
  )
}

function Crumbs({ resource }: { resource: Resource }) {
  return (
    <p class="crumbs">
      <a href={to('data')}>Data</a> / <a href={to(`data/${slug(resource)}`)}>{resource.many}</a>
    </p>
  )
}

interface RowTabsProps {
  resource: Resource
  row: Row
  onSave: (changes: Record<string, unknown>) => Promise<string | null>
  onWhy: (field: string) => void
}

function RowTabs({ resource, row, onSave, onWhy }: RowTabsProps) {
  const { model } = useStore(shared)
  const [tab, setTab] = useState('fields')
  const relations = resource.fields.filter((field) => field.relation?.many && targetOf(field))
  const tabs = TABS.filter((each) => (each.id === 'relations' ? relations.length > 0 : each.id === 'history' ? resource.changes || resource.history : true))
  return (
    <section class="panel">
      <Tabs label="Row" tabs={tabs} at={tab} onChange={setTab}>
        {tab === 'fields' && <Fields resource={resource} row={row} onSave={onSave} onWhy={onWhy} />}
        {tab === 'relations' && model && relations.map((field) => <Related key={field.name} resource={resource} row={row} field={field} model={model} />)}
        {tab === 'history' && <History resource={resource} row={row} />}
        {tab === 'json' && <Code label="The row as JSON" text={JSON.stringify(row, null, 2)} />}
        {tab === 'graphql' && <AsGraphql resource={resource} row={row} />}
      </Tabs>
    </section>
  )
}
