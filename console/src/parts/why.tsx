/** Which rules decide, and what they saw. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { current } from '../session'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Twin, Why } from '../types'
import { fileLine } from '../words'
import { Loading, Problem } from './ui'

export function WhyLines({ why }: { why: Why }) {
  return (
    <div>
      {why.decided !== null && (
        <p>
          <span class={why.decided ? 'badge good' : 'badge bad'}>{why.decided ? 'allowed' : 'not allowed'}</span>
        </p>
      )}
      {why.lines.length > 0 && <pre>{why.lines.join('\n')}</pre>}
      <RuleList rules={why.rules ?? []} />
    </div>
  )
}

export function RuleList({ rules }: { rules: Twin['rules'] }) {
  return (
    <>
      {rules.map((rule, n) => (
        <div class="rule" key={n}>
          <strong>{rule.title}</strong>
          {rule.lines.length > 0 && <pre>{rule.lines.join('\n')}</pre>}
          {fileLine(rule) && <span class="where">{fileLine(rule)}</span>}
        </div>
      ))}
    </>
  )
}

export interface Question {
  resource: string
  /** Without one, all rows. */
  id?: string
  verb: string
  field?: string
}

/** Whom explanations are about: the one as whom one views, or nobody else. */
export function asWhom(): Record<string, string> {
  const { as, user } = current.get()
  if (user) return { as: 'signed_in', user }
  return as ? { as } : {}
}

export const explain = (question: Question, whom: Record<string, string>, signal?: AbortSignal) =>
  ask<Why>('POST', '/console/api/why', { body: { ...question, ...whom }, own: true, ...(signal ? { signal } : {}) })

const VERBS = ['read', 'update', 'delete']
const VIEWED = '@viewed'

/** A question about a row, with its answer. Of a known row it is asked at once, else when a form is sent. */
export function AskWhy({ resource: given, id: row, verb: first = 'read', field: about = '' }: { resource?: string; id?: string; verb?: string; field?: string }) {
  const { model } = useStore(shared)
  const { as, user } = useStore(current)
  const [resource, setResource] = useState(given ?? model?.resources[0]?.name ?? '')
  const [id, setId] = useState(row ?? '')
  const [verb, setVerb] = useState(first)
  const [field, setField] = useState(about)
  const [role, setRole] = useState(user ? VIEWED : (as ?? ''))
  const [why, setWhy] = useState<Why | null>(null)
  const [error, setError] = useState<unknown>(null)
  const put = (signal?: AbortSignal) => {
    setWhy(null)
    setError(null)
    const whom = role === VIEWED ? asWhom() : role ? { as: role } : {}
    explain({ resource, id: id.trim(), verb, ...(field ? { field } : {}) }, whom as Record<string, string>, signal).then(setWhy, (reason) => !signal?.aborted && setError(reason))
  }
  useEffect(() => {
    if (!row) return
    const stop = new AbortController()
    put(stop.signal)
    return () => stop.abort()
  }, [verb, field, role])
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    put()
  }
  const roles = (model?.roles ?? []).map((each) => [each, each])
  const who = [['', 'I'], ...(user ? [[VIEWED, as ?? '']] : []), ...roles]
  const fields = (model?.resources.find((each) => each.name === resource)?.fields ?? []).filter((each) => !each.relation).map((each) => [each.name, each.name])
  return (
    <>
      <form class="row ends" onSubmit={submit}>
        <Choice label="May" value={role} onChange={setRole} options={who} />
        <Choice label="do" value={verb} onChange={setVerb} options={VERBS.map((each) => [each, each])} />
        {!given && <Choice label="to the" value={resource} onChange={setResource} options={(model?.resources ?? []).map((each) => [each.name, each.name])} />}
        {!row && (
          <label class="stack grow">
            <span>with the id</span>
            <input value={id} required onInput={(event) => setId(event.currentTarget.value)} placeholder="Id of a row" />
          </label>
        )}
        <Choice label={row ? 'with' : 'its field'} value={field} onChange={setField} options={[['', 'the row'], ...fields]} />
        {!row && <button class="strong">Ask</button>}
      </form>
      {error ? <Problem error={error} /> : why ? <WhyLines why={why} /> : row ? <Loading /> : null}
    </>
  )
}

function Choice({ label, value, options, onChange }: { label: string; value: string; options: string[][]; onChange: (value: string) => void }) {
  return (
    <label class="stack">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}
