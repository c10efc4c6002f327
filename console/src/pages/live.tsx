/** Live: changes as they come, of one resource or of all. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { events, Failure } from '../api'
import { labelOf } from '../parts/columns'
import { Copy, Empty, Heading } from '../parts/ui'
import { setQuery, to, usePlace } from '../router'
import { collection, shared, slug } from '../shell'
import { useStore } from '../store'
import type { Resource, Row } from '../types'
import { timeOfDay } from '../words'

const KEPT = 200
const MOST_STREAMS = 6
const KINDS = ['CREATED', 'UPDATED', 'DELETED', 'ENTERED', 'LEFT']

interface Change {
  cursor: string
  kind: string
  rowId: string
  at: string
  resource: Resource
  row: Row | null
  before: Row | null
}

export function LivePage() {
  const { model } = useStore(shared)
  const place = usePlace()
  const chosen = place.query.get('of') ?? ''
  const [changes, setChanges] = useState<Change[]>([])
  const [paused, setPaused] = useState(false)
  const [held, setHeld] = useState<Change[]>([])
  const [kind, setKind] = useState('')
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const known = useRef(new Map<string, Row>())
  const pausing = useRef(paused)
  pausing.current = paused
  const resources = useMemo(() => (model?.resources ?? []).filter((each) => each.changes && each.verbs.read), [model])
  const followed = chosen ? resources.filter((each) => slug(each) === chosen) : resources.slice(0, MOST_STREAMS)
  const names = followed.map((each) => each.name).join()
  useEffect(() => {
    const stop = new AbortController()
    setProblem(null)
    const add = (change: Change) => (pausing.current ? setHeld : setChanges)((now) => [change, ...now].slice(0, KEPT))
    for (const resource of followed) {
      follow(resource, stop.signal, known.current, add).catch((error) => {
        if (!stop.signal.aborted) setProblem(`${resource.many}: ${error instanceof Failure ? error.message : 'the stream ended.'}`)
      })
    }
    return () => stop.abort()
  }, [names])
  const resume = () => {
    setChanges((now) => [...held, ...now].slice(0, KEPT))
    setHeld([])
    setPaused(false)
  }
  const shown = changes.filter((change) => (!kind || change.kind === kind) && (!text || JSON.stringify([change.rowId, change.row]).toLowerCase().includes(text.toLowerCase())))
  return (
    <>
      <Heading title="Live" doc="Every change that you may see, as it is committed.">
        <label class="row">
          <span class="soft">Of</span>
          <select value={chosen} onChange={(event) => setQuery({ of: event.currentTarget.value })}>
            <option value="">{resources.length > MOST_STREAMS ? `the first ${MOST_STREAMS} resources` : 'all resources'}</option>
            {resources.map((resource) => (
              <option key={resource.name} value={slug(resource)}>
                {resource.many}
              </option>
            ))}
          </select>
        </label>
        <select aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">all kinds</option>
          {KINDS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <input data-filter="" type="search" aria-label="Filter changes" placeholder="Filter…" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <button aria-pressed={paused} onClick={() => (paused ? resume() : setPaused(true))}>
          {paused ? `Resume (${held.length})` : 'Pause'}
        </button>
        <button onClick={() => setChanges([])}>Clear</button>
      </Heading>
      {problem && <p class="notice">{problem}</p>}
      <section class="panel" aria-label="Changes">
        {shown.length === 0 ? (
          <Empty title={changes.length ? 'No change matches' : 'Waiting for a change'}>
            <p>
              Change a row on the page <a href={to('data')}>Data</a> in another tab, or send a mutation: it appears here at once.
            </p>
          </Empty>
        ) : (
          <div role="log" aria-label="Changes" aria-live="polite">
            {shown.map((change) => (
              <Line key={change.cursor} change={change} />
            ))}
          </div>
        )}
      </section>
      {changes[0] && (
        <p class="row soft">
          Cursor after the newest change: <Copy text={changes[0].cursor} label="Copy cursor" />
        </p>
      )}
    </>
  )
}

async function follow(resource: Resource, signal: AbortSignal, known: Map<string, Row>, add: (change: Change) => void): Promise<void> {
  for await (const event of events('GET', `${collection(resource)}/changes`, { signal })) {
    if (event.name !== 'message') continue
    const row = (event.data[resource.one] ?? null) as Row | null
    const key = `${resource.name}/${event.data.rowId}`
    add({ ...event.data, resource, row, before: known.get(key) ?? null })
    if (row) known.set(key, row)
  }
}

/** `user Ada`; a row without a label has the name of its resource in it already. */
function named(row: Row, resource: Resource): string {
  const label = labelOf(row, resource)
  return label.startsWith(`${resource.one} `) ? label : `${resource.one} ${label}`
}

function Line({ change }: { change: Change }) {
  const { resource, row, before } = change
  const tone = change.kind === 'DELETED' || change.kind === 'LEFT' ? 'badge bad' : change.kind === 'UPDATED' ? 'badge warn' : 'badge good'
  const differs = row && before ? Object.keys(row).filter((name) => !['version', 'updatedAt'].includes(name) && JSON.stringify(row[name]) !== JSON.stringify(before[name])) : []
  return (
    <div class="event">
      <time dateTime={change.at}>{timeOfDay(change.at)}</time>
      <span class={tone}>{change.kind.toLowerCase()}</span>
      <div class="what">
        <a href={to(`data/${slug(resource)}/${change.rowId}`)}>
          {row ? named(row, resource) : `${resource.one} ${change.rowId}`}
        </a>
        {row?.version ? <span class="soft"> version {row.version}</span> : null}
        {differs.length > 0 && (
          <div class="diff">
            {differs.map((name) => (
              <span key={name}>
                {name}: <del>{JSON.stringify(before?.[name])}</del> → <ins>{JSON.stringify(row?.[name])}</ins>
              </span>
            ))}
          </div>
        )}
        {row && !before && (
          <details>
            <summary class="soft">the row</summary>
            <pre>{JSON.stringify(row, null, 2)}</pre>
          </details>
        )}
      </div>
    </div>
  )
}
