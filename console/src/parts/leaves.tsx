/** The two leaves of a request with its price, its answer and its explanation. */
import { type GraphQLSchema, parse as parseGraphql, print as printGraphql } from 'graphql'
import { useEffect, useState } from 'preact/hooks'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Twin } from '../types'
import { AnswerPane } from './answer'
import type { Draft } from './drafts'
import { Editor, type Mark } from './editor'
import { Explanation } from './explanation'
import { placesOfRefusal } from './fault-places'
import { FieldTree } from './field-tree'
import { Price } from './price'
import { operations, variablesOf, watchesOf, wishOf } from './request-wish'
import { completeRest } from './rest-complete'
import { encoded, parse } from './rest-text'
import { say, Switch } from './ui'
import { type Switches, useSending } from './use-sending'
import { type ChangeDraft, useTwin } from './use-twin'

interface LeavesProps {
  draft: Draft
  change: ChangeDraft
  schema: GraphQLSchema | undefined
  as: string | null
  dev: boolean
  onSent: (status: number) => void
}

export function Leaves({ draft, change, schema, as, dev, onSent }: LeavesProps) {
  const { twin, broken } = useTwin(draft, dev ? null : as, change)
  const [faults, setFaults] = useState<Mark[]>([])
  const [switches, setSwitches] = useState<Switches>({ idempotent: false, ifMatch: null })
  const names = operations(draft.query)
  const operation = names.length < 2 ? '' : names.includes(draft.operation) ? draft.operation : (names[0] ?? '')
  const watches = watchesOf(draft, twin?.kind)
  const { outcome, send, stop } = useSending(draft, watches, switches, onSent, setFaults)
  useEffect(() => setFaults(twin?.refused ? placesOfRefusal(draft.side, draft.side === 'graphql' ? draft.query : draft.rest, twin.refused) : []), [twin])
  useEffect(() => {
    if (operation !== draft.operation) change({ operation })
  }, [operation])
  const parsed = parse(draft.rest)
  const sent = { graphql: draft.query.trim() ? { query: draft.query, variables: variablesOf(draft) } : null, rest: parsed && { ...parsed, url: encoded(parsed.url) } }
  const leaf = { draft, change, twin, faults, onRun: () => void send() }
  return (
    <>
      <div class="bar">
        <Price twin={twin} broken={broken} as={as} />
        <div class="row">
          {names.length > 1 && <Operations names={names} at={operation} onChange={(name) => change({ operation: name })} />}
          <button class="strong" onClick={() => void send()}>
            {watches ? 'Follow' : 'Send'} <span aria-hidden="true">⌃⏎</span>
          </button>
        </div>
      </div>
      <div class="leaves">
        <GraphqlLeaf {...leaf} schema={schema} />
        <RestLeaf {...leaf} switches={switches} onSwitch={setSwitches} />
      </div>
      <div class="below">
        <AnswerPane outcome={outcome} onStop={stop} />
        <Explanation twin={twin} body={wishOf(draft, dev ? null : as)} sent={sent} as={as} />
      </div>
    </>
  )
}

function Operations({ names, at, onChange }: { names: string[]; at: string; onChange: (name: string) => void }) {
  return (
    <label class="row">
      <span class="soft">Operation</span>
      <select value={at} onChange={(event) => onChange(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  )
}

interface LeafProps {
  draft: Draft
  change: ChangeDraft
  twin: Twin | null
  faults: Mark[]
  onRun: () => void
}

/** Whether a leaf is written, follows, or waits for the other one. */
function Role({ isOn, twin }: { isOn: boolean; twin: Twin | null }) {
  return <span class="soft">{isOn ? 'you write here' : twin?.refused ? 'waits for a valid request' : 'follows'}</span>
}

function GraphqlLeaf({ draft, change, twin, faults, onRun, schema }: LeafProps & { schema: GraphQLSchema | undefined }) {
  const [showVariables, setShowVariables] = useState(Boolean(draft.variables))
  useEffect(() => {
    if (draft.variables) setShowVariables(true)
  }, [draft.variables])
  const [showTree, setShowTree] = useState(false)
  const isOn = draft.side === 'graphql'
  const format = () => {
    try {
      if (draft.query.trim()) change({ query: `${printGraphql(parseGraphql(draft.query))}\n` })
    } catch (error) {
      say((error as Error).message)
    }
  }
  return (
    <section class={isOn ? 'leaf left on' : 'leaf left'} aria-label="GraphQL leaf">
      <div class="leaf-head">
        <h2>GraphQL</h2>
        <Role isOn={isOn} twin={twin} />
        <button class="quiet" aria-pressed={showTree} onClick={() => setShowTree(!showTree)}>
          Fields
        </button>
        <button class="quiet" aria-pressed={showVariables} onClick={() => setShowVariables(!showVariables)}>
          Variables
        </button>
        <button class="quiet" onClick={format}>
          Prettify
        </button>
      </div>
      {showTree && <FieldTree query={draft.query} onChange={(query) => change({ query, side: 'graphql' })} />}
      <Editor
        label="GraphQL document"
        language="graphql"
        text={draft.query}
        schema={schema}
        faults={isOn ? faults : []}
        hint="{ … } or query, mutation, subscription"
        onChange={(query) => change({ query, side: 'graphql' })}
        onRun={onRun}
        onFormat={format}
      />
      {showVariables && <Editor small label="Variables as JSON" language="json" text={draft.variables} hint='{"id": "…"}' onChange={(variables) => change({ variables, side: 'graphql' })} onRun={onRun} />}
    </section>
  )
}

function RestLeaf({ draft, change, twin, faults, onRun, switches, onSwitch }: LeafProps & { switches: Switches; onSwitch: (switches: Switches) => void }) {
  const { model } = useStore(shared)
  const isOn = draft.side === 'rest'
  return (
    <section class={isOn ? 'leaf right on' : 'leaf right'} aria-label="REST leaf">
      <div class="leaf-head">
        <h2>REST</h2>
        <Role isOn={isOn} twin={twin} />
      </div>
      <Editor label="REST request" language="rest" text={draft.rest} complete={completeRest(model)} faults={isOn ? faults : []} hint="GET /…" onChange={(rest) => change({ rest, side: 'rest' })} onRun={onRun} />
      <div class="leaf-foot">
        <Switch label="Idempotency-Key" on={switches.idempotent} onChange={(idempotent) => onSwitch({ ...switches, idempotent })} />
        <Switch label="If-Match" on={switches.ifMatch !== null} onChange={(on) => onSwitch({ ...switches, ifMatch: on ? '"1"' : null })} />
        {switches.ifMatch !== null && <input aria-label="ETag to match" value={switches.ifMatch} onInput={(event) => onSwitch({ ...switches, ifMatch: event.currentTarget.value })} />}
      </div>
    </section>
  )
}
