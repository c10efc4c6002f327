/** The fields of a row: shown, edited one by one, and those that a rule hides with the reason. */
import { useEffect, useState } from 'preact/hooks'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Field, Resource, Row } from '../types'
import { canEdit, columnsOf, keyOf, readInput, writeInput } from './columns'
import { FieldInput, Picker, targetOf, Value } from './field-input'
import { asWhom, explain } from './why'

type Save = (change: Record<string, unknown>) => Promise<string | null>

const nameOf = (attr: string) => attr.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())

/** Why fields are masked, by their names. In `dev` only: elsewhere no row is looked at for an explanation. */
function useReasons(resource: Resource, row: Row): Record<string, string> {
  const { boot } = useStore(shared)
  const [reasons, setReasons] = useState<Record<string, string>>({})
  const empty = resource.fields.filter((field) => !field.relation && row[field.name] === null).map((field) => field.name)
  useEffect(() => {
    setReasons({})
    if (boot?.mode !== 'dev' || !empty.length) return
    const stop = new AbortController()
    explain({ resource: resource.name, id: row.id, verb: 'read', field: empty.join() }, asWhom(), stop.signal).then(
      (why) => setReasons(masked(why.lines)),
      () => undefined,
    )
    return () => stop.abort()
  }, [row.id, row.version, empty.join()])
  return reasons
}

/** Of the lines of an explanation: what follows `User 7.email: read: no`, by the name of the field. */
export function masked(lines: string[]): Record<string, string> {
  const found: Record<string, string> = {}
  let at = ''
  for (const line of lines) {
    const head = /^\S.*\.(\w+): read: (yes|no)$/.exec(line)
    if (head || /^\S/.test(line)) at = head?.[2] === 'no' ? nameOf(head[1] ?? '') : ''
    else if (at) found[at] = `${found[at] ? `${found[at]} ` : ''}${line.trim()}`
    if (head && at) found[at] ??= ''
  }
  return found
}

interface FieldsProps {
  resource: Resource
  row: Row
  onSave: Save
  onWhy: (field: string) => void
}

export function Fields({ resource, row, onSave, onWhy }: FieldsProps) {
  const [editing, setEditing] = useState('')
  const reasons = useReasons(resource, row)
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
              <Shown field={field} row={row} reason={reasons[field.name]} onWhy={onWhy} />
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

function Shown({ field, row, reason, onWhy }: { field: Field; row: Row; reason: string | undefined; onWhy: (field: string) => void }) {
  if (reason !== undefined) {
    return (
      <span class="grow masked">
        <span class="badge warn">hidden by a rule</span> <span class="soft">{reason}</span>
        <button class="quiet why-mark" aria-label={`Why is ${field.name} hidden?`} onClick={() => onWhy(field.name)}>
          why?
        </button>
      </span>
    )
  }
  return (
    <span class="grow">
      <Value field={field} value={row[field.name]} resource={targetOf(field)} />
      {row[field.name] === null && (
        <button class="quiet why-mark" aria-label={`Why is ${field.name} null?`} onClick={() => onWhy(field.name)}>
          why?
        </button>
      )}
    </span>
  )
}

function EditField({ resource, row, field, onSave, onClose }: { resource: Resource; row: Row; field: Field; onSave: Save; onClose: () => void }) {
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

