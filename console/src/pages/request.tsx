/** Request: two leaves, GraphQL and REST. One is written, the other follows. */
import { buildClientSchema, getIntrospectionQuery, type GraphQLSchema, parse as parseGraphql, print as printGraphql } from 'graphql'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask, call, events, Failure, header } from '../api'
import { AnswerPane, type Outcome } from '../parts/answer'
import { type Draft, emptyDraft, firstDraft, loadHistory, loadTabs, nameOf, type Past, remember, saveTabs, share, shared as sharedDraft } from '../parts/drafts'
import { Editor, type Mark } from '../parts/editor'
import { Explanation } from '../parts/explanation'
import { placesOfAnswer, placesOfRefusal } from '../parts/fault-places'
import { completeRest } from '../parts/rest-complete'
import { encoded, parse, print } from '../parts/rest-text'
import { Dialog, Heading, say, Switch } from '../parts/ui'
import { usePlace } from '../router'
import { current } from '../session'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Twin } from '../types'
import { timeOfDay } from '../words'

const WAIT = 250
/** Refusals of what is being typed: what followed before stays meanwhile. */
const UNFINISHED = new Set(['GRAPHQL_PARSE_FAILED', 'GRAPHQL_VALIDATION_FAILED', 'BAD_REQUEST', 'BAD_USER_INPUT', 'NOT_FOUND'])

const MOST_FIELDS = 3000

/** The schema for completion and checks. That of a very large model takes the service seconds: it is read on request. */
function useSchema(): { schema: GraphQLSchema | undefined; load: (() => void) | null } {
  const { model } = useStore(shared)
  const [schema, setSchema] = useState<GraphQLSchema>()
  const [wanted, setWanted] = useState(false)
  const isLarge = (model?.resources ?? []).reduce((sum, resource) => sum + resource.fields.length, 0) > MOST_FIELDS
  useEffect(() => {
    if (isLarge && !wanted) return
    ask<any>('POST', '/graphql', { body: { query: getIntrospectionQuery() } }).then(
      (answer) => answer.data && setSchema(buildClientSchema(answer.data)),
      () => say('The schema could not be read: there is no completion.'),
    )
  }, [model, wanted])
  return { schema, load: isLarge && !wanted ? () => setWanted(true) : null }
}

function operations(query: string): string[] {
  return [...query.matchAll(/(?:^|\})\s*(?:#[^\n]*\n\s*)*(?:query|mutation|subscription)\s+(\w+)/g)].map((found) => found[1] ?? '')
}

function variablesOf(draft: Draft): Record<string, unknown> | null {
  if (!draft.variables.trim()) return {}
  try {
    return JSON.parse(draft.variables) as Record<string, unknown>
  } catch {
    return null
  }
}

/** What is asked of `twin` and `plan`; null while there is nothing to ask. */
function wishOf(draft: Draft, as: string | null): Record<string, unknown> | null {
  const more = as ? { as } : {}
  if (draft.side === 'graphql') {
    const variables = variablesOf(draft)
    if (!draft.query.trim() || !variables) return null
    return { query: draft.query, variables, ...(draft.operation ? { operationName: draft.operation } : {}), ...more }
  }
  const parsed = parse(draft.rest)
  if (!parsed?.url.startsWith('/')) return null
  let body: unknown = undefined
  if (parsed.body) {
    try {
      body = JSON.parse(parsed.body)
    } catch {
      return null
    }
  }
  return { method: parsed.method, url: parsed.url, headers: parsed.headers, ...(body === undefined ? {} : { body }), ...more }
}

/** The request of a shared link, taken out of the address. */
function takeLink(): Draft | null {
  const given = /^#r=(.+)/.exec(location.hash)?.[1]
  if (given) history.replaceState(null, '', location.pathname)
  return given ? sharedDraft(given) : null
}

export function RequestPage() {
  const { model, boot } = useStore(shared)
  const { as } = useStore(current)
  const { schema, load } = useSchema()
  const [tabs, setTabs] = useState<Draft[]>(() => {
    const fromLink = takeLink()
    const found = loadTabs()
    if (fromLink) return [fromLink, ...found]
    return found.length ? found : [model ? firstDraft(model) : emptyDraft()]
  })
  const place = usePlace()
  const [at, setAt] = useState(() => place.query.get('tab') ?? tabs[0]?.id ?? '')
  const draft = tabs.find((tab) => tab.id === at) ?? tabs[0] ?? emptyDraft()
  const [past, setPast] = useState<Past[]>(loadHistory)
  const [showPast, setShowPast] = useState(false)
  useEffect(() => saveTabs(tabs), [tabs])
  const change = (changes: Partial<Draft>, whileOn?: Draft['side']) =>
    setTabs((now) => now.map((tab) => (tab.id === draft.id && (!whileOn || tab.side === whileOn) ? { ...tab, ...changes } : tab)))
  const open = (next: Draft) => {
    setTabs((now) => [...now, next])
    setAt(next.id)
  }
  useEffect(() => {
    const look = () => {
      const given = takeLink()
      if (given) open(given)
    }
    addEventListener('hashchange', look)
    return () => removeEventListener('hashchange', look)
  }, [])
  const close = (id: string) =>
    setTabs((now) => {
      const rest = now.filter((tab) => tab.id !== id)
      return rest.length ? rest : [emptyDraft()]
    })
  return (
    <>
      <Heading title="Request">
        {load && (
          <button class="quiet" title="The schema of this model is large: completion and checks need it" onClick={load}>
            Load completion
          </button>
        )}
        <button onClick={() => setShowPast(true)}>History</button>
        <button
          onClick={() => {
            const url = `${location.origin}${location.pathname}#r=${share(draft)}`
            navigator.clipboard.writeText(url).then(
              () => say('A link to this request is copied. It has no token in it.'),
              () => history.replaceState(null, '', url),
            )
          }}
        >
          Share
        </button>
      </Heading>
      <div class="request-tabs" role="group" aria-label="Requests">
        {tabs.map((tab) => (
          <span key={tab.id} class={tab.id === draft.id ? 'request-tab on' : 'request-tab'}>
            <button aria-current={tab.id === draft.id ? 'true' : undefined} onClick={() => setAt(tab.id)}>
              {nameOf(tab)}
            </button>
            <button class="icon" aria-label={`Close ${nameOf(tab)}`} onClick={() => close(tab.id)}>
              ✕
            </button>
          </span>
        ))}
        <button class="quiet" onClick={() => open(emptyDraft())}>
          + New
        </button>
      </div>
      <Leaves key={draft.id} draft={draft} change={change} schema={schema} as={as} dev={boot?.mode === 'dev'} onSent={(status) => setPast(remember(draft, status))} />
      {showPast && (
        <Dialog title="History" onClose={() => setShowPast(false)}>
          {past.length === 0 && <p class="soft">What you send is listed here, in this browser only.</p>}
          <ul class="palette-list">
            {past.map((each) => (
              <li key={each.at}>
                <button
                  class="quiet"
                  onClick={() => {
                    open({ ...each, id: emptyDraft().id })
                    setShowPast(false)
                  }}
                >
                  {nameOf(each)}
                </button>
                <span class="soft">
                  {each.status} · {timeOfDay(each.at)}
                </span>
              </li>
            ))}
          </ul>
        </Dialog>
      )}
    </>
  )
}

interface LeavesProps {
  draft: Draft
  /** With a side: only while that leaf is the one that is written. */
  change: (changes: Partial<Draft>, whileOn?: Draft['side']) => void
  schema: GraphQLSchema | undefined
  as: string | null
  dev: boolean
  onSent: (status: number) => void
}

/** The other leaf follows what is written, after a pause. */
function useTwin(draft: Draft, as: string | null, change: LeavesProps['change']): { twin: Twin | null; broken: string | null } {
  const [twin, setTwin] = useState<Twin | null>(null)
  const [broken, setBroken] = useState<string | null>(null)
  const wish = useMemo(() => wishOf(draft, as), [draft.side, draft.side === 'graphql' ? draft.query : draft.rest, draft.variables, draft.operation, as])
  useEffect(() => {
    if (!wish) {
      setTwin(null)
      return
    }
    const stop = new AbortController()
    const later = setTimeout(async () => {
      try {
        const found = await ask<Twin>('POST', '/console/api/twin', { body: wish, signal: stop.signal })
        if (stop.signal.aborted) return
        setBroken(null)
        setTwin(found)
        const refusal = found.refused && !UNFINISHED.has(found.refused.code) ? `# Nothing follows: ${found.refused.message}\n` : null
        if (draft.side === 'graphql' && found.rest?.length) change({ rest: print(found.rest) }, 'graphql')
        else if (draft.side === 'graphql' && refusal) change({ rest: refusal }, 'graphql')
        if (draft.side === 'rest' && found.graphql?.none !== undefined) change({ query: `# ${found.graphql.none}\n`, variables: '' }, 'rest')
        else if (draft.side === 'rest' && found.graphql) {
          const variables = found.graphql.variables
          change({ query: found.graphql.query, variables: variables && Object.keys(variables).length ? JSON.stringify(variables, null, 2) : '' }, 'rest')
        } else if (draft.side === 'rest' && refusal) change({ query: refusal, variables: '' }, 'rest')
      } catch (error) {
        if (!stop.signal.aborted) setBroken(error instanceof Error ? error.message : String(error))
      }
    }, WAIT)
    return () => {
      clearTimeout(later)
      stop.abort()
    }
  }, [wish])
  return { twin, broken }
}

function Leaves({ draft, change, schema, as, dev, onSent }: LeavesProps) {
  const { model } = useStore(shared)
  const { twin, broken } = useTwin(draft, dev ? null : as, change)
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const [faults, setFaults] = useState<Mark[]>([])
  const [idempotent, setIdempotent] = useState(false)
  const [ifMatch, setIfMatch] = useState<string | null>(null)
  const [showVariables, setShowVariables] = useState(Boolean(draft.variables))
  const stream = useRef<AbortController | null>(null)
  useEffect(() => () => stream.current?.abort(), [])
  const text = draft.side === 'graphql' ? draft.query : draft.rest
  useEffect(() => setFaults(twin?.refused ? placesOfRefusal(draft.side, text, twin.refused) : []), [twin])
  useEffect(() => {
    if (draft.variables) setShowVariables(true)
  }, [draft.variables])

  const names = operations(draft.query)
  const operation = names.length < 2 ? '' : names.includes(draft.operation) ? draft.operation : (names[0] ?? '')
  useEffect(() => {
    if (operation !== draft.operation) change({ operation })
  }, [operation])
  const watches = twin?.kind === 'watch' || (draft.side === 'graphql' ? /^\s*subscription\b/m.test(draft.query) && (names.length < 2 || new RegExp(`subscription\\s+${draft.operation}\\b`).test(draft.query)) : /^GET\s+\/[\w-]+\/changes/.test(draft.rest.trim()))

  const run = async () => {
    stream.current?.abort()
    const own: Record<string, string> = {}
    if (idempotent) own['idempotency-key'] = crypto.randomUUID()
    const parsed = parse(draft.rest)
    const variables = variablesOf(draft)
    if (draft.side === 'graphql' && !variables) return say('The variables are not JSON.')
    const method = draft.side === 'graphql' ? 'POST' : (parsed?.method ?? 'GET')
    const url = draft.side === 'graphql' ? '/graphql' : (parsed?.url ?? '/')
    const body = { query: draft.query, variables, ...(draft.operation ? { operationName: draft.operation } : {}) }
    if (watches) return follow(method, url, draft.side === 'graphql' ? { body, headers: own } : { headers: { ...parsed?.headers, ...own } })
    setOutcome({ kind: 'waiting' })
    try {
      if (draft.side === 'rest' && ifMatch) own['if-match'] = ifMatch
      const rest: Record<string, string> = { ...parsed?.headers, ...own, prefer: parsed?.headers['prefer'] ?? 'cost' }
      if (parsed?.body) rest['content-type'] ??= 'application/json'
      const answer =
        draft.side === 'graphql'
          ? await call(method, url, { body: { ...body, extensions: { cost: true } }, headers: own })
          : await call(method, url, parsed?.body ? { raw: parsed.body, headers: rest } : { headers: rest })
      const cost = answer.json?.extensions?.cost?.price ?? /price=(\d+)/.exec(header(answer, 'cost') ?? '')?.[1] ?? null
      setOutcome({ kind: 'answer', answer, cost: cost === null ? null : String(cost) })
      setFaults(placesOfAnswer(draft.side, text, answer))
      onSent(answer.status)
    } catch (error) {
      setOutcome({ kind: 'failed', status: 0, message: error instanceof Error ? error.message : String(error), problem: null })
    }
  }

  const follow = async (method: string, url: string, extra: { body?: unknown; headers: Record<string, string> }) => {
    const stop = new AbortController()
    stream.current = stop
    setOutcome({ kind: 'stream', events: [], open: true })
    onSent(200)
    try {
      for await (const event of events(method, url, { ...extra, signal: stop.signal })) {
        setOutcome((now) => (now.kind === 'stream' ? { ...now, events: [{ ...event, at: Date.now() }, ...now.events].slice(0, 200) } : now))
      }
    } catch (error) {
      if (!stop.signal.aborted) {
        const failed = error instanceof Failure ? error : null
        return setOutcome({ kind: 'failed', status: failed?.status ?? 0, message: String((error as Error).message), problem: failed?.problem ?? null })
      }
    }
    setOutcome((now) => (now.kind === 'stream' ? { ...now, open: false } : now))
  }

  const format = () => {
    try {
      if (draft.query.trim()) change({ query: `${printGraphql(parseGraphql(draft.query))}\n` })
    } catch (error) {
      say((error as Error).message)
    }
  }
  const isOn = (side: Draft['side']) => draft.side === side
  const parsed = parse(draft.rest)
  const sent = { graphql: draft.query.trim() ? { query: draft.query, variables: variablesOf(draft) } : null, rest: parsed && { ...parsed, url: encoded(parsed.url) } }
  return (
    <>
      <div class="bar">
        <Price twin={twin} broken={broken} as={as} />
        <div class="row">
          {names.length > 1 && (
            <label class="row">
              <span class="soft">Operation</span>
              <select value={operation} onChange={(event) => change({ operation: event.currentTarget.value })}>
                {names.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
          <button class="strong" onClick={() => void run()}>
            {watches ? 'Follow' : 'Send'} <span aria-hidden="true">⌃⏎</span>
          </button>
        </div>
      </div>
      <div class="leaves">
        <section class={isOn('graphql') ? 'leaf left on' : 'leaf left'} aria-label="GraphQL leaf">
          <div class="leaf-head">
            <h2>GraphQL</h2>
            <span class="soft">{isOn('graphql') ? 'you write here' : twin?.refused ? 'waits for a valid request' : 'follows'}</span>
            <button class="quiet" aria-pressed={showVariables} onClick={() => setShowVariables(!showVariables)}>
              Variables
            </button>
            <button class="quiet" onClick={format}>
              Prettify
            </button>
          </div>
          <Editor
            label="GraphQL document"
            language="graphql"
            text={draft.query}
            schema={schema}
            faults={isOn('graphql') ? faults : []}
            hint="{ … } or query, mutation, subscription"
            onChange={(query) => change({ query, side: 'graphql' })}
            onRun={() => void run()}
            onFormat={format}
          />
          {showVariables && (
            <Editor small label="Variables as JSON" language="json" text={draft.variables} hint='{"id": "…"}' onChange={(variables) => change({ variables, side: 'graphql' })} onRun={() => void run()} />
          )}
        </section>
        <section class={isOn('rest') ? 'leaf right on' : 'leaf right'} aria-label="REST leaf">
          <div class="leaf-head">
            <h2>REST</h2>
            <span class="soft">{isOn('rest') ? 'you write here' : twin?.refused ? 'waits for a valid request' : 'follows'}</span>
          </div>
          <Editor
            label="REST request"
            language="rest"
            text={draft.rest}
            complete={completeRest(model)}
            faults={isOn('rest') ? faults : []}
            hint="GET /…"
            onChange={(rest) => change({ rest, side: 'rest' })}
            onRun={() => void run()}
          />
          <div class="leaf-foot">
            <Switch label="Idempotency-Key" on={idempotent} onChange={setIdempotent} />
            <Switch label="If-Match" on={ifMatch !== null} onChange={(on) => setIfMatch(on ? '"1"' : null)} />
            {ifMatch !== null && <input aria-label="ETag to match" value={ifMatch} onInput={(event) => setIfMatch(event.currentTarget.value)} />}
          </div>
        </section>
      </div>
      <div class="below">
        <AnswerPane outcome={outcome} onStop={() => stream.current?.abort()} />
        <Explanation twin={twin} body={wishOf(draft, dev ? null : as)} sent={sent} as={as} />
      </div>
    </>
  )
}

function Price({ twin, broken, as }: { twin: Twin | null; broken: string | null; as: string | null }) {
  if (broken) return <p class="price soft" role="status">{broken}</p>
  if (twin?.refused) {
    return (
      <p class="price refused" role="status">
        {twin.refused.code}: {twin.refused.message}
      </p>
    )
  }
  if (!twin?.price) return <p class="price" role="status">Depth and price appear as you write.</p>
  const { depth, maxDepth, cost, maxCost, lines } = twin.price
  const formula = lines.map((line) => /^Price.* = (.+)$/.exec(line)?.[1]).find(Boolean)
  return (
    <p class="price" role="status" title={lines.join('\n')}>
      Depth <b>{depth}</b> of {maxDepth} · Price <b>{cost}</b> of {maxCost}
      {formula ? ` = ${formula}` : ''}
      {as ? ` · as ${as}` : ''}
    </p>
  )
}
