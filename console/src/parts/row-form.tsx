/** A form for a new row, made from the model: required fields first, pickers for relations, rows of relations along. */
import { useId, useState } from 'preact/hooks'
import { call, failure } from '../api'
import { collection } from '../shell'
import type { Field, Resource, Row } from '../types'
import { keyOf, labelOf, readInput, writeInput } from './columns'
import { FieldInput, Picker, targetOf } from './field-input'
import { Dialog, say } from './ui'

/** What is typed into the form of one row. */
export interface Filled {
  texts: Record<string, string>
  picked: Record<string, Row | null>
  nested: Record<string, Filled[]>
  linked: Record<string, Row[]>
}

export const blank = (): Filled => ({ texts: {}, picked: {}, nested: {}, linked: {} })

const DEEPEST = 2

const writable = (resource: Resource) =>
  resource.fields
    .filter((field) => !field.relation && !field.keyOf && !field.readOnly && !field.generated)
    .sort((a, b) => Number(Boolean(b.required)) - Number(Boolean(a.required)))

const oneRelations = (resource: Resource, without?: string) =>
  resource.fields.filter((field) => field.relation && !field.relation.many && field.name !== without && keyOf(resource, field) && !keyOf(resource, field)?.readOnly)

const manyRelations = (resource: Resource) => resource.fields.filter((field) => field.relation?.many && targetOf(field))

/** The body of the request; throws with a sentence where something is no value. */
export function bodyOf(resource: Resource, filled: Filled): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  for (const field of writable(resource)) {
    const text = filled.texts[field.name]
    if (text !== undefined && (text !== '' || field.required)) body[field.name] = readInput(field, text)
  }
  for (const field of oneRelations(resource)) {
    const key = keyOf(resource, field)
    const target = targetOf(field)
    const fresh = filled.nested[field.name]?.[0]
    if (fresh && target) body[field.name] = { create: bodyOf(target, fresh) }
    else if (key && filled.picked[field.name]) body[key.name] = filled.picked[field.name]?.id
  }
  for (const field of manyRelations(resource)) {
    const target = targetOf(field)
    const create = target ? (filled.nested[field.name] ?? []).map((each) => bodyOf(target, each)) : []
    const connect = (filled.linked[field.name] ?? []).map((row) => ({ id: row.id }))
    if (create.length || connect.length) body[field.name] = { ...(create.length ? { create } : {}), ...(connect.length ? { connect } : {}) }
  }
  return body
}

export function CreateDialog({ resource, onClose, onCreated, preset }: { resource: Resource; onClose: () => void; onCreated: (row: Row) => void; preset?: Filled }) {
  const [filled, setFilled] = useState<Filled>(preset ?? blank())
  const [faults, setFaults] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState('')
  const [busy, setBusy] = useState(false)
  const create = async (event: SubmitEvent) => {
    event.preventDefault()
    setProblem('')
    setFaults({})
    setBusy(true)
    try {
      const key = crypto.randomUUID()
      const answer = await call('POST', collection(resource), { body: bodyOf(resource, filled), headers: { 'idempotency-key': key } })
      if (answer.status < 400) {
        say(`Created ${resource.one} ${labelOf(answer.json as Row, resource)}.`)
        return onCreated(answer.json as Row)
      }
      const errors = (answer.json?.errors ?? []) as { pointer?: string; message: string }[]
      setFaults(Object.fromEntries(errors.map((each) => [each.pointer ?? '', each.message])))
      setProblem(failure(answer).message)
    } catch (error) {
      setProblem((error as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={`New ${resource.one}`} onClose={onClose} wide>
      <form class="form" onSubmit={create} noValidate>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <RowFields resource={resource} filled={filled} onChange={setFilled} faults={faults} pointer="" depth={0} />
        <div class="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="strong" disabled={busy}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface RowFieldsProps {
  resource: Resource
  filled: Filled
  onChange: (filled: Filled) => void
  faults: Record<string, string>
  pointer: string
  depth: number
  /** The relation back to the row around it, which needs no value. */
  without?: string
}

export function RowFields(props: RowFieldsProps) {
  const { resource, filled, onChange, faults, pointer, depth, without } = props
  return (
    <>
      {writable(resource).map((field) => (
        <Labelled key={field.name} field={field} fault={faults[`${pointer}/${field.name}`]}>
          {(id, describedBy) => (
            <FieldInput
              field={field}
              id={id}
              describedBy={describedBy}
              invalid={Boolean(faults[`${pointer}/${field.name}`])}
              text={filled.texts[field.name] ?? writeInput(field.default)}
              onText={(text) => onChange({ ...filled, texts: { ...filled.texts, [field.name]: text } })}
            />
          )}
        </Labelled>
      ))}
      {oneRelations(resource, without).map((field) => (
        <OneRelation key={field.name} {...props} field={field} />
      ))}
      {depth < DEEPEST && manyRelations(resource).filter((field) => field.name !== without).map((field) => <ManyRelation key={field.name} {...props} field={field} />)}
    </>
  )
}

function Labelled({ field, fault, children }: { field: Field; fault: string | undefined; children: (id: string, describedBy: string) => preact.ComponentChildren }) {
  const id = useId()
  return (
    <div class="form-field">
      <label for={id}>
        {field.name}
        <span class="soft mono">{field.type.replace('!', '')}</span>
        {field.required && <span class="badge">required</span>}
      </label>
      {children(id, `${id}-doc`)}
      <span id={`${id}-doc`} class={fault ? 'fault' : 'doc'}>
        {fault ?? field.doc ?? (field.example !== undefined && field.example !== null ? `For example ${writeInput(field.example)}` : '')}
      </span>
    </div>
  )
}

function OneRelation({ resource, filled, onChange, faults, pointer, depth, field }: RowFieldsProps & { field: Field }) {
  const target = targetOf(field)
  const key = keyOf(resource, field)
  const id = useId()
  if (!target || !key) return null
  const fresh = filled.nested[field.name]?.[0]
  const fault = faults[`${pointer}/${key.name}`] ?? faults[`${pointer}/${field.name}`]
  const nest = (next: Filled | null) => onChange({ ...filled, nested: { ...filled.nested, [field.name]: next ? [next] : [] } })
  return (
    <div class="form-field">
      <label for={id}>
        {field.name}
        <span class="soft mono">{target.name}</span>
        {key.required && <span class="badge">required</span>}
      </label>
      {fresh ? (
        <div class="nested">
          <RowFields resource={target} filled={fresh} onChange={nest} faults={faults} pointer={`${pointer}/${field.name}/create`} depth={depth + 1} without={field.relation?.inverse ?? ''} />
          <button type="button" class="quiet" onClick={() => nest(null)}>
            Choose an existing {target.one} instead
          </button>
        </div>
      ) : (
        <>
          <Picker target={target} id={id} invalid={Boolean(fault)} chosen={filled.picked[field.name] ?? null} onPick={(row) => onChange({ ...filled, picked: { ...filled.picked, [field.name]: row } })} />
          {target.verbs.create && depth < DEEPEST && (
            <div>
              <button type="button" class="quiet" onClick={() => nest(blank())}>
                + New {target.one}
              </button>
            </div>
          )}
        </>
      )}
      {fault && <span class="fault">{fault}</span>}
    </div>
  )
}

function ManyRelation({ filled, onChange, faults, pointer, depth, field }: RowFieldsProps & { field: Field }) {
  const target = targetOf(field)
  if (!target) return null
  const fresh = filled.nested[field.name] ?? []
  const linked = filled.linked[field.name] ?? []
  const setFresh = (next: Filled[]) => onChange({ ...filled, nested: { ...filled.nested, [field.name]: next } })
  const setLinked = (next: Row[]) => onChange({ ...filled, linked: { ...filled.linked, [field.name]: next } })
  if (!target.verbs.create && !field.relation?.through) return null
  return (
    <div class="form-field" role="group" aria-label={field.name}>
      <span class="label">
        {field.name}
        <span class="soft mono">[{target.name}]</span>
      </span>
      {fresh.map((each, n) => (
        <div class="nested" key={n}>
          <RowFields
            resource={target}
            filled={each}
            onChange={(next) => setFresh(fresh.map((old, i) => (i === n ? next : old)))}
            faults={faults}
            pointer={`${pointer}/${field.name}/create/${n}`}
            depth={depth + 1}
            without={field.relation?.inverse ?? ''}
          />
          <button type="button" class="quiet" onClick={() => setFresh(fresh.filter((_, i) => i !== n))}>
            Remove this {target.one}
          </button>
        </div>
      ))}
      {linked.length > 0 && (
        <div class="row">
          {linked.map((row) => (
            <button type="button" key={row.id} aria-label={`Remove ${labelOf(row, target)}`} onClick={() => setLinked(linked.filter((each) => each.id !== row.id))}>
              {labelOf(row, target)} ✕
            </button>
          ))}
        </div>
      )}
      {field.relation?.through && <Picker target={target} label={`Add ${target.one}`} chosen={null} onPick={(row) => row && !linked.some((each) => each.id === row.id) && setLinked([...linked, row])} />}
      {target.verbs.create && (
        <div>
          <button type="button" class="quiet" onClick={() => setFresh([...fresh, blank()])}>
            + New {target.one}
          </button>
        </div>
      )}
    </div>
  )
}
