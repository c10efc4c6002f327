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
          {why && (
            <Dialog title="Why?" onClose={() => setWhy(null)} wide>
              <AskWhy resource={resource.name} id={row.id} verb={why.verb} field={why.field ?? ''} />
            </Dialog>
          )}
          {conflict && <Merge resource={resource} conflict={conflict} onClose={() => setConflict(null)} onSave={(changes) => void resolve(changes, conflict.theirs)} />}
        </>
      )}
    </>
  )
}
