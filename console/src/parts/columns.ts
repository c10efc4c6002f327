/** Columns of a table, and its filters as parameters of a REST list. */
import { collection, resourceNamed } from '../shell'
import { short } from '../words'
import type { Argument, Field, Model, Resource, Row } from '../types'

const SYSTEM = ['version', 'createdAt', 'updatedAt', 'deletedAt']

/** What a table shows of a row: its own fields and the rows that it refers to; the label first, bookkeeping last. */
export function columnsOf(resource: Resource): Field[] {
  const shown = resource.fields.filter((field) => !field.keyOf && !field.writeOnly && !field.relation?.many && field.name !== 'id')
  const rank = (field: Field) => (field.name === resource.label ? 0 : SYSTEM.includes(field.name) ? 2 : 1)
  return shown.map((field, n) => ({ field, n })).sort((a, b) => rank(a.field) - rank(b.field) || a.n - b.n).map(({ field }) => field)
}

/** The field with the id of a to-one relation. */
export const keyOf = (resource: Resource, relation: Field) => resource.fields.find((field) => field.keyOf === relation.name)

export function selection(resource: Resource, model: Model): string {
  const related = columnsOf(resource).flatMap((field) => {
    const target = field.relation && resourceNamed(model, field.relation.to)
    return target ? [`${field.name}(${['id', target.label].filter(Boolean).join(',')})`] : []
  })
  return ['*', ...related].join(',')
}

export function labelOf(row: Record<string, unknown> | null | undefined, resource: Resource | undefined): string {
  if (!row) return ''
  const label = resource?.label ? row[resource.label] : null
  if (label !== null && label !== undefined && label !== '') return String(label)
  return `${resource?.one ?? ''} ${short(String(row['id'] ?? ''))}`.trim()
}

const OPERATORS: [RegExp, string][] = [
  [/^>=\s*/, 'gte'],
  [/^<=\s*/, 'lte'],
  [/^!=?\s*/, 'ne'],
  [/^>\s*/, 'gt'],
  [/^<\s*/, 'lt'],
  [/^=\s*/, 'eq'],
]
const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i

/** The operator and the value of what was typed into a filter: `>= 10`, `null`, `ann`. */
export function readFilter(field: Field, typed: string): Record<string, unknown> {
  const text = typed.trim()
  if (text === 'null') return { isNull: true }
  if (text === '!null') return { isNull: false }
  const known = field.filter ?? []
  for (const [pattern, name] of OPERATORS) {
    if (pattern.test(text) && known.includes(name)) return { [name]: convert(field, text.replace(pattern, '')) }
  }
  if (field.kind === 'list' && known.includes('has')) return { has: text }
  if (field.scalar === 'DateTime' && /^\d{4}-\d\d-\d\d$/.test(text)) {
    const next = new Date(`${text}T00:00:00Z`)
    next.setUTCDate(next.getUTCDate() + 1)
    return { gte: `${text}T00:00:00Z`, lt: next.toISOString() }
  }
  if (field.kind === 'scalar' && known.includes('icontains')) return { icontains: text }
  return { eq: convert(field, text) }
}

function convert(field: Field, text: string): unknown {
  if (field.scalar === 'Boolean') return text === 'true'
  if (field.scalar === 'Int' || field.scalar === 'Float') return Number(text)
  return text
}

export interface Filters {
  values: Record<string, string>
  sort: string
  search: string
  after: string
  deleted?: boolean
}

/** `where` of all filters together; null where there are none. */
export function whereOf(resource: Resource, model: Model, filters: Filters): Record<string, unknown> | null {
  const parts: Record<string, unknown>[] = []
  for (const [name, typed] of Object.entries(filters.values)) {
    const field = resource.fields.find((each) => each.name === name)
    if (!field || !typed.trim()) continue
    if (!field.relation) {
      parts.push({ [name]: readFilter(field, typed) })
      continue
    }
    const key = keyOf(resource, field)
    const target = resourceNamed(model, field.relation.to)
    const label = target?.fields.find((each) => each.name === target.label)
    if (key && (ID.test(typed.trim()) || /^!?null$/.test(typed.trim()) || !label)) parts.push({ [key.name]: readFilter({ ...key, filter: ['eq', 'isNull'] }, typed) })
    else if (label) parts.push({ [name]: { [label.name]: readFilter(label, typed) } })
  }
  return parts.length === 0 ? null : parts.length === 1 ? (parts[0] ?? null) : { and: parts }
}

export function listUrl(resource: Resource, model: Model, filters: Filters, more: Record<string, string> = {}): string {
  const query = new URLSearchParams()
  const where = whereOf(resource, model, filters)
  query.set('fields', selection(resource, model))
  if (where) query.set('where', JSON.stringify(where))
  if (filters.search) query.set('search', filters.search)
  if (filters.sort) query.set('sort', filters.sort)
  if (filters.after) query.set('after', filters.after)
  if (filters.deleted) query.set('deleted', 'only')
  for (const [name, value] of Object.entries(more)) query.set(name, value)
  return `${collection(resource)}?${query}`
}

/** The value that was typed, as JSON; throws with a sentence where it is none. */
export function readInput(field: Field | Argument, text: string): unknown {
  if (text === '' && (field.nullable || field.kind !== 'scalar' || field.scalar !== 'String')) return null
  if (field.scalar === 'Boolean') return text === 'true'
  if (field.kind === 'list' || field.kind === 'json' || field.kind === 'value') {
    try {
      return JSON.parse(text)
    } catch {
      throw new Error(`${field.name} is not JSON.`)
    }
  }
  if (field.scalar === 'Int' || field.scalar === 'Float') {
    const number = Number(text)
    if (Number.isNaN(number)) throw new Error(`${field.name} is not a number.`)
    return number
  }
  return text
}

export function writeInput(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export const canEdit = (resource: Resource, field: Field): boolean => {
  const own = field.relation && !field.relation.many ? keyOf(resource, field) : field
  return resource.verbs.update && Boolean(own) && !own?.readOnly && !own?.writeOnce && own?.kind !== 'computed' && own?.kind !== 'counter'
}

export const isNumeric = (field: Field) => /^(Int|BigInt|Decimal|Float)/.test(field.type)

export const etag = (row: Row) => `"${row.version ?? 0}.x"`
