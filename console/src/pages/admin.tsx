/** Admin: accounts, clients, API keys, signing keys, trusted documents, webhooks, migrations. */
import { useEffect, useState } from 'preact/hooks'
import { call, Failure, failure } from '../api'
import { Migrations } from '../parts/migrations'
import { Copy, Dialog, Empty, Heading, Loading, Problem, say, Tabs } from '../parts/ui'
import { setQuery, usePlace } from '../router'
import { session } from '../session'
import { shared } from '../shell'
import { useStore } from '../store'
import { moment } from '../words'

interface Kind {
  id: string
  title: string
  one: string
  doc: string
  /** What a new one needs. */
  fields: { name: string; label: string; hint?: string; list?: boolean; whole?: boolean; secret?: boolean; required?: boolean }[]
}

const KINDS: Kind[] = [
  {
    id: 'accounts',
    title: 'Accounts',
    one: 'account',
    doc: 'People who sign in with a password.',
    fields: [
      { name: 'email', label: 'E-mail', required: true },
      { name: 'password', label: 'Password', secret: true, hint: 'Empty: one is made and shown once.' },
      { name: 'roles', label: 'Roles', list: true, hint: 'staff, admin' },
      { name: 'user', label: 'Id of the user row' },
    ],
  },
  {
    id: 'clients',
    title: 'Clients',
    one: 'client',
    doc: 'Applications that sign people in by OAuth.',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'redirects', label: 'Redirect addresses', list: true, hint: 'https://app.example/back' },
    ],
  },
  {
    id: 'keys',
    title: 'API keys',
    one: 'key',
    doc: 'Keys for programs. A key is shown once.',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'roles', label: 'Roles', list: true },
      { name: 'user', label: 'Id of the user row' },
    ],
  },
  { id: 'signing-keys', title: 'Signing keys', one: 'signing key', doc: 'Keys that sign tokens. A new one is used from now on; old ones verify until they retire.', fields: [] },
  { id: 'documents', title: 'Trusted documents', one: 'document', doc: 'GraphQL documents that clients name by their hash.', fields: [{ name: 'documents', label: 'Document', required: true, whole: true }] },
  {
    id: 'webhooks',
    title: 'Webhooks',
    one: 'webhook',
    doc: 'Addresses that changes are sent to, signed. The secret is shown once.',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'url', label: 'Address', required: true, hint: 'https://erp.example/hook' },
      { name: 'on', label: 'Changes of', required: true, hint: 'A resource, such as Order' },
      { name: 'query', label: 'Filter and fields', hint: 'status=paid&fields=total' },
      { name: 'roles', label: 'Roles', list: true, hint: 'It is sent what they may see.' },
      { name: 'user', label: 'Id of the user row' },
    ],
  },
]

/** Lists that are read only, each with a page of its own. */
const MIGRATIONS = 'migrations'

export function AdminPage() {
  const place = usePlace()
  const { model, boot } = useStore(shared)
  const at = place.query.get('tab') ?? 'accounts'
  const kind = KINDS.find((each) => each.id === at) ?? KINDS[0]
  if (!model?.admin || !kind) {
    return (
      <>
        <Heading title="Admin" />
        <Empty title="This page is for admins">
          <p>{boot?.mode === 'dev' ? 'Open the link that the terminal shows, or look as “Myself” again.' : 'Sign in with an account that has the role admin.'}</p>
        </Empty>
      </>
    )
  }
  return (
    <>
      <Heading title="Admin" doc="Needs the role admin, and a sign-in of the last five minutes." />
      <section class="panel">
        <Tabs label="Admin" tabs={[...KINDS.map(({ id, title }) => ({ id, title })), { id: MIGRATIONS, title: 'Migrations' }]} at={at === MIGRATIONS ? at : kind.id} onChange={(id) => setQuery({ tab: id })}>
          {at === MIGRATIONS ? <MigrationsTab /> : <List key={kind.id} kind={kind} />}
        </Tabs>
      </section>
    </>
  )
}

function MigrationsTab() {
  const [error, setError] = useState<unknown>(null)
  return error ? <Refused error={error} retry={() => setError(null)} /> : <Migrations refused={setError} />
}

type Entry = Record<string, unknown>

const KEYS: Record<string, string> = { accounts: 'email', clients: 'name', keys: 'name', 'signing-keys': 'kid', documents: 'hash', webhooks: 'name' }

const idOf = (kind: Kind, entry: Entry) => String(entry[KEYS[kind.id] ?? 'id'] ?? '')

function List({ kind }: { kind: Kind }) {
  const [entries, setEntries] = useState<Entry[] | null>(null)
  const [error, setError] = useState<unknown>(null)
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<Entry | null>(null)
  const [shown, setShown] = useState<Entry | null>(null)
  const path = `/console/api/admin/${kind.id}`
  const load = async () => {
    const answer = await call('GET', path)
    if (answer.status >= 400) return setError(failure(answer))
    setError(null)
    setEntries(Array.isArray(answer.json) ? (answer.json as Entry[]) : [])
  }
  useEffect(() => void load().catch(setError), [])
  const send = async (method: string, to: string, body?: unknown): Promise<string | null> => {
    const answer = await call(method, to, body === undefined ? {} : { body })
    if (answer.status >= 400) {
      if (answer.json?.reauthenticate) setError(failure(answer))
      return failure(answer).message
    }
    if (answer.json && typeof answer.json === 'object' && hasSecret(answer.json)) setShown(answer.json as Entry)
    say('Done.')
    void load()
    return null
  }
  if (error) return <Refused error={error} retry={() => void load()} />
  if (!entries) return <Loading />
  const at = (entry: Entry) => `${path}/${encodeURIComponent(idOf(kind, entry))}`
  const remove = async (entry: Entry) => {
    const problem = await send('DELETE', at(entry), {})
    if (problem) say(problem)
    setRemoving(null)
  }
  const replay = (entry: Entry) => void send('PATCH', at(entry), { replay: true }).then((problem) => problem && say(problem))
  const disable = (entry: Entry) => void send('PATCH', at(entry), { disabled: !entry['disabled'] }).then((problem) => problem && say(problem))
  return (
    <div class="form">
      <div class="bar">
        <p class="soft">{kind.doc}</p>
        <button class="strong" onClick={() => (kind.fields.length ? setAdding(true) : void send('POST', path, {}))}>
          New {kind.one}
        </button>
      </div>
      {entries.length === 0 ? <Empty title={`There is no ${kind.one} yet`} /> : <Entries kind={kind} entries={entries} onDisable={disable} onReplay={replay} onRemove={setRemoving} />}
      {adding && <Add kind={kind} onClose={() => setAdding(false)} onAdd={(body) => send('POST', path, body)} />}
      {removing && <Removal name={idOf(kind, removing)} onClose={() => setRemoving(null)} onRemove={() => void remove(removing)} />}
      {shown && <ShownOnce entry={shown} onClose={() => setShown(null)} />}
    </div>
  )
}

interface EntriesProps {
  kind: Kind
  entries: Entry[]
  onDisable: (entry: Entry) => void
  onReplay: (entry: Entry) => void
  onRemove: (entry: Entry) => void
}

function Entries({ kind, entries, onDisable, onReplay, onRemove }: EntriesProps) {
  const columns = [...new Set(entries.flatMap((entry) => Object.keys(entry)))].slice(0, 8)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={kind.title}>
      <table class="grid">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={idOf(kind, entry)}>
              {columns.map((name) => (
                <td key={name}>
                  <div class="cell">{written(entry[name])}</div>
                </td>
              ))}
              <td>
                {'disabled' in entry && (
                  <button class="quiet" onClick={() => onDisable(entry)}>
                    {entry['disabled'] ? 'Enable' : 'Disable'}
                  </button>
                )}
                {Number(entry['dead']) > 0 && (
                  <button class="quiet" aria-label={`Replay ${idOf(kind, entry)}`} onClick={() => onReplay(entry)}>
                    Replay
                  </button>
                )}
                <button class="quiet" aria-label={`Remove ${idOf(kind, entry)}`} onClick={() => onRemove(entry)}>
                  Remove
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Removal({ name, onClose, onRemove }: { name: string; onClose: () => void; onRemove: () => void }) {
  return (
    <Dialog title={`Remove ${name}?`} onClose={onClose}>
      <p>What it allows ends at once. This cannot be undone.</p>
      <div class="dialog-foot">
        <button onClick={onClose}>Keep it</button>
        <button class="danger" onClick={onRemove}>
          Remove
        </button>
      </div>
    </Dialog>
  )
}

function ShownOnce({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  return (
    <Dialog title="Shown once" onClose={onClose}>
      <p>Copy it now: the service keeps only a hash of it.</p>
      <dl class="fields">
        {Object.entries(entry).map(([name, value]) => [
          <dt key={name}>{name}</dt>,
          <dd key={`${name}-value`}>
            <code>{written(value)}</code>
            <Copy text={String(value)} />
          </dd>,
        ])}
      </dl>
    </Dialog>
  )
}

const hasSecret = (value: object) => ['secret', 'text', 'password', 'token'].some((name) => typeof (value as Entry)[name] === 'string')

function written(value: unknown): string {
  if (value === null || value === undefined) return '–'
  if (typeof value === 'number' && value > 1e9) return moment(new Date(value * 1000).toISOString())
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.join(', ') || '–'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function Refused({ error, retry }: { error: unknown; retry: () => void }) {
  const again = error instanceof Failure && error.problem?.reauthenticate
  const { boot } = useStore(shared)
  if (!again) return <Problem error={error} retry={retry} />
  return (
    <Empty title="Sign in again">
      <p>This page needs a sign-in of the last five minutes.</p>
      {boot?.mode === 'serve' ? (
        <button class="strong" onClick={() => void session.signIn('login')}>
          Sign in
        </button>
      ) : (
        <p>Restart the service, and open the link that it prints.</p>
      )}
    </Empty>
  )
}

function Add({ kind, onClose, onAdd }: { kind: Kind; onClose: () => void; onAdd: (body: Entry) => Promise<string | null> }) {
  const [texts, setTexts] = useState<Record<string, string>>({})
  const [problem, setProblem] = useState('')
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const body: Entry = {}
    for (const field of kind.fields) {
      const text = (texts[field.name] ?? '').trim()
      if (field.whole) body[field.name] = [text]
      else if (field.list) body[field.name] = text ? text.split(/[\s,]+/) : []
      else if (text) body[field.name] = text
    }
    const found = await onAdd(body)
    if (found) setProblem(found)
    else onClose()
  }
  return (
    <Dialog title={`New ${kind.one}`} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        {problem && (
          <p class="bad" role="alert">
            {problem}
          </p>
        )}
        {kind.fields.map((field) => (
          <label key={field.name} class="form-field">
            <span class="label">
              {field.label} {field.required && <span class="badge">required</span>}
            </span>
            {field.secret ? (
              <input type="password" autocomplete="new-password" value={texts[field.name] ?? ''} onInput={(event) => setTexts({ ...texts, [field.name]: event.currentTarget.value })} />
            ) : (
              <input type="text" autocomplete="off" required={Boolean(field.required)} value={texts[field.name] ?? ''} onInput={(event) => setTexts({ ...texts, [field.name]: event.currentTarget.value })} />
            )}
            {field.hint && <span class="doc">{field.hint}</span>}
          </label>
        ))}
        <div class="dialog-foot">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button class="strong">Add</button>
        </div>
      </form>
    </Dialog>
  )
}
