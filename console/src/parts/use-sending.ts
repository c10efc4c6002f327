/** Sends what is written: one answer, or a stream of events until it is stopped. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { call, events, type Extra, Failure, header } from '../api'
import type { Outcome } from './answer'
import type { Draft } from './drafts'
import type { Mark } from './editor'
import { placesOfAnswer } from './fault-places'
import { variablesOf } from './request-wish'
import { type Parsed, parse } from './rest-text'
import { say } from './ui'

const MOST_EVENTS = 200

export interface Switches {
  idempotent: boolean
  ifMatch: string | null
}

interface Sending {
  outcome: Outcome
  send: () => Promise<void>
  stop: () => void
}

/** Method, path, body and headers of a draft. */
function requestOf(draft: Draft, parsed: Parsed | null, switches: Switches, watches: boolean): { method: string; url: string; extra: Extra } {
  const own: Record<string, string> = switches.idempotent ? { 'idempotency-key': crypto.randomUUID() } : {}
  if (draft.side === 'graphql') {
    const body = { query: draft.query, variables: variablesOf(draft), ...(draft.operation ? { operationName: draft.operation } : {}) }
    return { method: 'POST', url: '/graphql', extra: { body: watches ? body : { ...body, extensions: { cost: true } }, headers: own } }
  }
  const headers: Record<string, string> = { ...parsed?.headers, ...own }
  const found = { method: parsed?.method ?? 'GET', url: parsed?.url ?? '/' }
  if (watches) return { ...found, extra: { headers } }
  if (switches.ifMatch) headers['if-match'] = switches.ifMatch
  headers['prefer'] ??= 'cost'
  if (parsed?.body) headers['content-type'] ??= 'application/json'
  return { ...found, extra: parsed?.body ? { raw: parsed.body, headers } : { headers } }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

export function useSending(draft: Draft, watches: boolean, switches: Switches, onSent: (status: number) => void, onFaults: (faults: Mark[]) => void): Sending {
  const [outcome, setOutcome] = useState<Outcome>({ kind: 'none' })
  const stream = useRef<AbortController | null>(null)
  useEffect(() => () => stream.current?.abort(), [])
  const follow = async (method: string, url: string, extra: Extra) => {
    const stop = new AbortController()
    stream.current = stop
    setOutcome({ kind: 'stream', events: [], open: true })
    onSent(200)
    try {
      for await (const event of events(method, url, { ...extra, signal: stop.signal })) {
        setOutcome((now) => (now.kind === 'stream' ? { ...now, events: [{ ...event, at: Date.now() }, ...now.events].slice(0, MOST_EVENTS) } : now))
      }
    } catch (error) {
      const failed = error instanceof Failure ? error : null
      if (!stop.signal.aborted) return setOutcome({ kind: 'failed', status: failed?.status ?? 0, message: messageOf(error), problem: failed?.problem ?? null })
    }
    setOutcome((now) => (now.kind === 'stream' ? { ...now, open: false } : now))
  }
  const send = async () => {
    stream.current?.abort()
    if (draft.side === 'graphql' && !variablesOf(draft)) return say('The variables are not JSON.')
    const { method, url, extra } = requestOf(draft, parse(draft.rest), switches, watches)
    if (watches) return follow(method, url, extra)
    setOutcome({ kind: 'waiting' })
    try {
      const answer = await call(method, url, extra)
      const cost = answer.json?.extensions?.cost?.price ?? /price=(\d+)/.exec(header(answer, 'cost') ?? '')?.[1] ?? null
      setOutcome({ kind: 'answer', answer, cost: cost === null ? null : String(cost) })
      onFaults(placesOfAnswer(draft.side, draft.side === 'graphql' ? draft.query : draft.rest, answer))
      onSent(answer.status)
    } catch (error) {
      setOutcome({ kind: 'failed', status: 0, message: messageOf(error), problem: null })
    }
  }
  return { outcome, send, stop: () => stream.current?.abort() }
}
