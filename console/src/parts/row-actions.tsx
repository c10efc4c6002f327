/** What can be done with a row: moves of its states, actions of the model, deletion. */
import { useEffect, useState } from 'preact/hooks'
import { ask, call, failure } from '../api'
import { collection } from '../shell'
import type { Action, Field, Resource, Row } from '../types'
import { count } from '../words'
import { etag, labelOf, readInput, writeInput } from './columns'
import { FieldInput, targetOf } from './field-input'
import { sentence } from './saving'
import { Tree } from './tree'
import { Dialog, Loading, say } from './ui'

/** A button for each state that may follow now. */
export function Moves({ resource, row, onMove }: { resource: Resource; row: Row; onMove: (change: Record<string, unknown>) => void }) {
  const fields = resource.fields.filter((field) => field.states && resource.verbs.update && !field.readOnly)
  return (
    <>
      {fields.flatMap((field: Field) =>
        (field.states?.[String(row[field.name])] ?? []).map((next) => (
          <button key={`${field.name}-${next}`} onClick={() => onMove({ [field.name]: next })}>
            <span class="soft">{field.name}</span> {next}
          </button>
        )),
      )}
    </>
  )
}

export function ActionButtons({ resource, row, on, onDone }: { resource: Resource; row?: Row; on: 'row' | 'collection'; onDone: () => void }) {
  const [open, setOpen] = useState<Action | null>(null)
  const actions = resource.actions.filter((action) => action.on === on)
  return (
    <>
      {actions.map((action) => (
        <button key={action.name} title={action.doc ?? undefined} onClick={() => setOpen(action)}>
          {action.name}
        </button>
      ))}
      {open && <ActionDialog action={open} row={row} onClose={() => setOpen(null)} onDone={onDone} />}
    </>
  )
}

function ActionDialog({ action, row, onClose, onDone }: { action: Action; row: Row | undefined; onClose: () => void; onDone: () => void }) {
  const [texts, setTexts] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState('')
  const [result, setResult] = useState<unknown>(undefined)
  const run = async (event: SubmitEvent) => {
    event.preventDefault()
    setProblem('')
    try {
      const given: Record<string, unknown> = {}
      for (const argument of action.arguments) {
        const text = texts[argument.name] ?? writeInput(argument.default)
        if (text !== '' || argument.required) given[argument.name] = readInput(argument, text)
      }
      const path = action.path.replace('{id}', row?.id ?? '')
      const query = new URLSearchParams(Object.entries(given).map(([name, value]) => [name, writeInput(value)]))
      const answer = action.method === 'GET' ? await call('GET', `${path}?${query}`) : await call('POST', path, { body: given, headers: row ? { 'if-match': etag(row) } : {} })
      if (answer.status >= 400) return setProblem(sentence(failure(answer)))
      say(`${action.name}: done.`)
      onDone()
      if (action.method === 'GET' || action.arguments.length === 0) setResult(answer.json)
      else onClose()
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <Dialog title={action.name} onClose={onClose}>
      {action.doc && <p class="soft">{action.doc}</p>}
      <form class="form" onSubmit={run} noValidate>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        {action.arguments.map((argument) => (
          <label class="form-field" key={argument.name}>
            <span class="label">
              {argument.name} <span class="soft mono">{argument.type}</span>
            </span>
            <FieldInput field={argument} text={texts[argument.name] ?? writeInput(argument.default)} onText={(text) => setTexts({ ...texts, [argument.name]: text })} />
          </label>
        ))}
        {result !== undefined && <Tree value={result} />}
        <div class="dialog-foot">
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button class="strong">Run {action.name}</button>
        </div>
      </form>
    </Dialog>
  )
}

interface Trial {
  allowed: boolean
  words: string
  related: string[]
}

/** Tries the deletion without making it, and counts what refers to the row. */
async function tryDelete(resource: Resource, row: Row): Promise<Trial> {
  const answer = await call('DELETE', `${collection(resource)}?id=${encodeURIComponent(row.id)}&most=1&dryRun=true`)
  const matched = answer.status < 400 ? (answer.json?.matched ?? 0) : 0
  const relations = resource.fields.filter((field) => field.relation?.many && targetOf(field))
  const related = await Promise.all(
    relations.map(async (field) => {
      const target = targetOf(field)
      try {
        const page = await ask<{ page: { total: number } }>('GET', `${collection(resource)}/${row.id}/${field.name}?first=1&count=exact&fields=id`)
        return page.page.total ? `${count(page.page.total, target?.one ?? 'row', target?.many ?? 'rows')} (${field.name})` : ''
      } catch {
        return ''
      }
    }),
  )
  if (answer.status >= 400) return { allowed: answer.status === 405 || answer.status === 404, words: failure(answer).message, related: related.filter(Boolean) }
  return { allowed: matched > 0, words: matched > 0 ? 'A dry run made the deletion, with every check, and took it back: it would work.' : 'You may not delete this row.', related: related.filter(Boolean) }
}

export function DeleteDialog({ resource, row, onClose, onDeleted }: { resource: Resource; row: Row; onClose: () => void; onDeleted: () => void }) {
  const [trial, setTrial] = useState<Trial | null>(null)
  const [problem, setProblem] = useState('')
  useEffect(() => {
    tryDelete(resource, row).then(setTrial, (error: Error) => setProblem(error.message))
  }, [])
  const remove = async () => {
    const answer = await call('DELETE', `${collection(resource)}/${row.id}`, { headers: { 'if-match': etag(row) } })
    if (answer.status >= 400) return setProblem(sentence(failure(answer)))
    say(resource.softDelete ? 'Moved to the trash.' : 'Deleted.')
    onDeleted()
  }
  return (
    <Dialog title={`Delete ${labelOf(row, resource)}?`} onClose={onClose}>
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      {!trial && !problem && <Loading what="Trying it without doing it…" />}
      {trial && (
        <>
          <p class={trial.allowed ? '' : 'bad'}>{trial.words}</p>
          {trial.related.length > 0 && (
            <div>
              <p>These rows refer to it, and go with it, lose the reference, or prevent it, as the model says:</p>
              <ul>
                {trial.related.map((each) => (
                  <li key={each}>· {each}</li>
                ))}
              </ul>
            </div>
          )}
          {resource.softDelete && <p class="soft">It goes to the trash, and can be restored.</p>}
        </>
      )}
      <div class="dialog-foot">
        <button onClick={onClose}>Keep it</button>
        <button class="danger" disabled={!trial?.allowed} onClick={() => void remove()}>
          Delete
        </button>
      </div>
    </Dialog>
  )
}
