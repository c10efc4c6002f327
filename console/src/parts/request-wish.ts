/** What a draft asks for: its operations, its variables, and the body of `twin` and `plan`. */
import { type Draft, shared as sharedDraft } from './drafts'
import { parse } from './rest-text'

export function operations(query: string): string[] {
  return [...query.matchAll(/(?:^|\})\s*(?:#[^\n]*\n\s*)*(?:query|mutation|subscription)\s+(\w+)/g)].map((found) => found[1] ?? '')
}

export function variablesOf(draft: Draft): Record<string, unknown> | null {
  if (!draft.variables.trim()) return {}
  try {
    return JSON.parse(draft.variables) as Record<string, unknown>
  } catch {
    return null
  }
}

/** What is asked of `twin` and `plan`; null while there is nothing to ask. */
export function wishOf(draft: Draft, as: string | null): Record<string, unknown> | null {
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
export function takeLink(): Draft | null {
  const given = /^#r=(.+)/.exec(location.hash)?.[1]
  if (given) history.replaceState(null, '', location.pathname)
  return given ? sharedDraft(given) : null
}

/** Is it a subscription, or a log of changes to follow? */
export function watchesOf(draft: Draft, kind: string | null | undefined): boolean {
  if (kind === 'watch') return true
  if (draft.side === 'rest') return /^GET\s+\/[\w-]+\/changes/.test(draft.rest.trim())
  const several = operations(draft.query).length > 1
  return /^\s*subscription\b/m.test(draft.query) && (!several || new RegExp(`subscription\\s+${draft.operation}\\b`).test(draft.query))
}
