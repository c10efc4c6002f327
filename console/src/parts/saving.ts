/** Writes of one row, with If-Match: the answer, a conflict, or a sentence that says what is wrong. */
import { ask, call, type Failure, failure } from '../api'
import { collection } from '../shell'
import type { Model, Resource, Row } from '../types'
import { etag, selection } from './columns'
import type { Conflict } from './merge'

export type Saved = { kind: 'saved'; row: Row } | { kind: 'conflict'; conflict: Conflict } | { kind: 'refused'; failure: Failure }

export async function save(resource: Resource, model: Model, base: Row, change: Record<string, unknown>): Promise<Saved> {
  const fields = encodeURIComponent(selection(resource, model))
  const url = `${collection(resource)}/${base.id}?fields=${fields}`
  const answer = await call('PATCH', url, { body: change, headers: { 'if-match': etag(base) } })
  if (answer.status === 412) {
    const theirs = await ask<Row>('GET', url)
    return { kind: 'conflict', conflict: { base, theirs, mine: change } }
  }
  if (answer.status >= 400) return { kind: 'refused', failure: failure(answer) }
  return { kind: 'saved', row: answer.json as Row }
}

/** A refusal in a sentence, with the fields that it names and the moves that are allowed. */
export function sentence(refused: Failure): string {
  const faults = (refused.problem?.errors ?? []) as { pointer?: string; message: string }[]
  const words = faults.map((fault) => `${fault.pointer?.slice(1) ?? ''} ${fault.message}`.trim())
  const allowed = Array.isArray(refused.problem?.allowed) ? ` Allowed: ${refused.problem.allowed.join(', ') || 'nothing'}.` : ''
  return words.length && refused.status === 422 ? words.join('; ') : refused.message + allowed
}
