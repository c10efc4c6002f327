/** Whose eyes? A role, or in `dev` also a user, who is picked by name or created. */
import { useEffect, useState } from 'preact/hooks'
import { ask, call, failure } from '../api'
import { current, session } from '../session'
import { shared } from '../shell'
import { store, useStore } from '../store'
import type { People, Person, Resource } from '../types'
import { blank, bodyOf, RowFields } from './row-form'
import { Dialog, Loading, Problem, say } from './ui'

const USER = '@user'
const asking = store(false)

export const openPeople = () => asking.set(true)

let knownRoles: string[] = []

export function ViewAs() {
  const { boot, model } = useStore(shared)
  const { as, user } = useStore(current)
  const isAsking = useStore(asking)
  if (model && !as) knownRoles = model.roles
  const roles = [...new Set([...knownRoles, ...(as && !user ? [as] : [])])]
  const choose = (role: string) => {
    if (role === USER) return openPeople()
    session.viewAs(role ? { role } : null).catch((error: Error) => say(error.message))
  }
  return (
    <>
      <label class={as ? 'stack viewing-as' : 'stack'}>
        <span>{boot?.mode === 'dev' ? 'View as' : 'Explain as'}</span>
        <select value={user ?? as ?? ''} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">Myself</option>
          {roles.map((role) => (
            <option key={role}>{role}</option>
          ))}
          {user && <option value={user}>{as}</option>}
          {boot?.mode === 'dev' && <option value={USER}>A user…</option>}
        </select>
      </label>
      {isAsking && <PeopleDialog onClose={() => asking.set(false)} />}
    </>
  )
}

const view = (person: Person) => session.viewAs({ user: person.id, name: person.label })

/** The users of the model, to be picked by name or id; the first one is created here. */
function PeopleDialog({ onClose }: { onClose: () => void }) {
  const [found, setFound] = useState<People | null>(null)
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [creating, setCreating] = useState(false)
  useEffect(() => {
    ask<People>('GET', '/console/api/people', { own: true }).then(setFound, setError)
  }, [])
  const wanted = text.trim().toLowerCase()
  const shown = (found?.people ?? []).filter((each) => `${each.label} ${each.id}`.toLowerCase().includes(wanted))
  const pick = (person: Person) => view(person).then(onClose, setError)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const typed = text.trim()
    const person = shown[0] ?? (typed ? { id: typed, label: typed } : null)
    if (person) void pick(person)
  }
  if (creating && found?.resource) return <NewPerson resource={found.resource} onClose={onClose} />
  return (
    <Dialog title="View as a user" onClose={onClose}>
      {error ? <Problem error={error} /> : null}
      <form class="form" onSubmit={submit}>
        <label class="form-field">
          <span class="label">Name, or id of the user</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <span class="doc">Rules know this id as viewer.id. The tables then show what this user sees.</span>
        </label>
        {!found && !error ? <Loading /> : <PeopleList people={shown} isEmpty={!found?.people.length} onPick={(person) => void pick(person)} />}
        <div class="dialog-foot">
          {found?.resource && (
            <button type="button" onClick={() => setCreating(true)}>
              New {found.resource.one}
            </button>
          )}
          <button class="strong">View</button>
        </div>
      </form>
    </Dialog>
  )
}

function PeopleList({ people, isEmpty, onPick }: { people: Person[]; isEmpty: boolean; onPick: (person: Person) => void }) {
  if (!people.length) return <p class="soft">{isEmpty ? 'There are no users yet: create the first.' : 'No user of this name is among the newest; an id works, too.'}</p>
  return (
    <ul class="palette-list" aria-label="Users">
      {people.map((person) => (
        <li key={person.id}>
          <button type="button" class="quiet" onClick={() => onPick(person)}>
            {person.label}
          </button>
          <span class="soft mono">{person.id}</span>
        </li>
      ))}
    </ul>
  )
}

/** A user that no rule lets anyone create: made without rules, in `dev` only. */
function NewPerson({ resource, onClose }: { resource: Resource; onClose: () => void }) {
  const plain: Resource = { ...resource, fields: resource.fields.filter((field) => !field.relation?.many) }
  const [filled, setFilled] = useState(blank())
  const [faults, setFaults] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState('')
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    try {
      const answer = await call('POST', '/console/api/person', { body: { values: bodyOf(plain, filled) }, own: true })
      if (answer.status < 400) {
        const label = resource.label ? filled.texts[resource.label] : ''
        await view({ id: answer.json.id, label: label || answer.json.id })
        return onClose()
      }
      const errors = (answer.json?.errors ?? []) as { pointer?: string; message: string }[]
      setFaults(Object.fromEntries(errors.map((each) => [each.pointer ?? '', each.message])))
      setProblem(failure(answer).message)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <Dialog title={`New ${resource.one}`} onClose={onClose}>
      <form class="form" onSubmit={submit} noValidate>
        <p class="soft">Made without rules, since you run this service in development. Constraints of the model hold.</p>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        <RowFields resource={plain} filled={filled} onChange={setFilled} faults={faults} pointer="/fields" depth={9} />
        <div class="dialog-foot">
          <button class="strong">Create, and view as this {resource.one}</button>
        </div>
      </form>
    </Dialog>
  )
}
