/** Requests that are being written: tabs, history, and links to share. No token is ever kept. */
import type { Field, Model, Resource } from '../types'
import { keep, kept } from '../store'

export interface Draft {
  id: string
  side: 'graphql' | 'rest'
  query: string
  variables: string
  rest: string
  operation: string
}

export interface Past extends Draft {
  at: number
  status: number
}

const LONGEST_HISTORY = 50

const fresh = () => crypto.randomUUID().slice(0, 8)

export const emptyDraft = (): Draft => ({ id: fresh(), side: 'graphql', query: '', variables: '', rest: '', operation: '' })

const PLAIN = (field: Field) => !field.relation && !field.keyOf && !field.writeOnly && (field.kind === 'scalar' || field.kind === 'enum') && !/^(id|version|createdAt|updatedAt)$/.test(field.name)

/** A first request that works with this model: some rows with their labels, and those of the rows that they refer to. */
export function firstDraft(model: Model): Draft {
  const readable = model.resources.filter((each) => each.verbs.read)
  const related = (each: Resource) => each.fields.find((field) => field.relation && !field.relation.many && readable.some((target) => target.name === field.relation?.to && target.label))
  const resource = readable.find((each) => each.label && related(each)) ?? readable.find(related) ?? readable[0]
  const draft = emptyDraft()
  if (!resource) return { ...draft, query: '{\n  __typename\n}\n' }
  const one = related(resource)
  const target = readable.find((each) => each.name === one?.relation?.to)
  const plain = resource.fields.filter(PLAIN).map((field) => field.name)
  const lines = [...new Set([...(resource.label ? [resource.label] : []), ...plain])].slice(0, 3)
  if (one && target) lines.push(`${one.name} {\n      ${target.label}\n    }`)
  const sort = resource.fields.find((field) => field.name === 'createdAt' && field.sort) ? ', orderBy: [{createdAt: DESC}]' : ''
  return { ...draft, query: `{\n  ${resource.many}(first: 5${sort}) {\n    ${lines.join('\n    ') || 'id'}\n  }\n}\n` }
}

const withoutToken = (text: string) => text.replace(/^(authorization|cookie)\s*:.*$\n?/gim, '')

const clean = <T extends Draft>(draft: T): T => ({ ...draft, rest: withoutToken(draft.rest) })

export function nameOf(draft: Draft): string {
  if (draft.side === 'rest') return draft.rest.trim().split('\n')[0]?.slice(0, 40) || 'New'
  const named = /(?:query|mutation|subscription)\s+(\w+)/.exec(draft.query)?.[1]
  const root = /\{\s*(?:\w+\s*:\s*)?(\w+)/.exec(draft.query)?.[1]
  return named ?? root ?? 'New'
}

export const loadTabs = (): Draft[] => kept<(Draft & { name: string })[]>('tabs', [])

export const saveTabs = (drafts: Draft[]) => keep('tabs', drafts.map((draft) => ({ ...clean(draft), name: nameOf(draft) })))

export const loadHistory = (): Past[] => kept<Past[]>('history', [])

export function remember(draft: Draft, status: number): Past[] {
  const same = (past: Past) => past.side === draft.side && past.query === draft.query && past.rest === withoutToken(draft.rest) && past.variables === draft.variables
  const next = [{ ...clean(draft), at: Date.now(), status }, ...loadHistory().filter((past) => !same(past))].slice(0, LONGEST_HISTORY)
  keep('history', next)
  return next
}

/** The draft as a fragment of a URL: it stays in the browser, no server is told of it. */
export function share(draft: Draft): string {
  const { side, query, variables, rest, operation } = clean(draft)
  const text = new TextEncoder().encode(JSON.stringify(side === 'graphql' ? { side, query, variables, operation } : { side, rest }))
  return btoa(String.fromCharCode(...text)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

export function shared(fragment: string): Draft | null {
  try {
    const bytes = Uint8Array.from(atob(fragment.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))
    const found = JSON.parse(new TextDecoder().decode(bytes)) as Partial<Draft>
    const text = (value: unknown) => (typeof value === 'string' ? value : '')
    return { id: fresh(), side: found.side === 'rest' ? 'rest' : 'graphql', query: text(found.query), variables: text(found.variables), rest: text(found.rest), operation: text(found.operation) }
  } catch {
    return null
  }
}
