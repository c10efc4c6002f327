/** The other leaf follows what is written, after a pause. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ask } from '../api'
import type { Twin } from '../types'
import type { Draft } from './drafts'
import { wishOf } from './request-wish'
import { print } from './rest-text'

const WAIT = 250
/** Refusals of what is being typed: what followed before stays meanwhile. */
const UNFINISHED = new Set(['GRAPHQL_PARSE_FAILED', 'GRAPHQL_VALIDATION_FAILED', 'BAD_REQUEST', 'BAD_USER_INPUT', 'NOT_FOUND'])

/** Changes a draft; with a side, only while that leaf is the one that is written. */
export type ChangeDraft = (changes: Partial<Draft>, whileOn?: Draft['side']) => void

/** What the other leaf becomes; null if it stays. */
function followed(side: Draft['side'], found: Twin): Partial<Draft> | null {
  const refusal = found.refused && !UNFINISHED.has(found.refused.code) ? `# Nothing follows: ${found.refused.message}\n` : null
  if (side === 'graphql') return found.rest?.length ? { rest: print(found.rest) } : refusal ? { rest: refusal } : null
  if (found.graphql?.none !== undefined) return { query: `# ${found.graphql.none}\n`, variables: '' }
  if (!found.graphql) return refusal ? { query: refusal, variables: '' } : null
  const variables = found.graphql.variables
  return { query: found.graphql.query, variables: variables && Object.keys(variables).length ? JSON.stringify(variables, null, 2) : '' }
}

export function useTwin(draft: Draft, as: string | null, change: ChangeDraft): { twin: Twin | null; broken: string | null } {
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
        const other = followed(draft.side, found)
        if (other) change(other, draft.side)
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
