/** Where in a leaf an error belongs. */
import type { Answer } from '../api'
import type { Twin } from '../types'
import type { Mark } from './editor'
import { parse, placeOf } from './rest-text'

const wordAt = (text: string, from: number) => from + (/^[\w$]+/.exec(text.slice(from))?.[0].length ?? 1)

function offset(text: string, line: number, column: number): number {
  const lines = text.split('\n')
  return lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1
}

/** The last name of a path that is in the text after the names before it. */
function byPath(text: string, path: unknown[]): Mark | null {
  let at = 0
  let found: [number, number] | null = null
  for (const part of path) {
    if (typeof part !== 'string') continue
    const match = new RegExp(`\\b${part.replace(/[^\w]/g, '\\$&')}\\b`).exec(text.slice(at))
    if (!match) continue
    found = [at + match.index, at + match.index + part.length]
    at = found[1]
  }
  return found && { from: found[0], to: found[1], message: '' }
}

function inGraphql(text: string, answer: Answer): Mark[] {
  const marks: Mark[] = []
  for (const error of answer.json?.errors ?? []) {
    for (const fault of error.extensions?.errors ?? []) {
      const mark = byPath(text, fault.argument ?? [])
      if (mark) marks.push({ ...mark, message: fault.message })
    }
    const place = error.locations?.[0]
    if (place) {
      const from = offset(text, place.line, place.column)
      marks.push({ from, to: wordAt(text, from), message: error.message })
    } else if (!error.extensions?.errors?.length && error.path) {
      const mark = byPath(text, error.path)
      if (mark) marks.push({ ...mark, message: error.message })
    }
  }
  return marks
}

function inRest(text: string, faults: { pointer?: string; message: string; field?: string }[]): Mark[] {
  const parsed = parse(text)
  if (!parsed) return []
  const marks: Mark[] = []
  for (const fault of faults) {
    const place = fault.pointer ? placeOf(parsed.body, fault.pointer) : null
    if (place) marks.push({ from: parsed.bodyAt + place.from, to: parsed.bodyAt + place.to, message: fault.message })
    else {
      const name = fault.pointer?.split('/').at(-1)
      const at = name ? text.indexOf(name) : -1
      marks.push(name && at >= 0 ? { from: at, to: at + name.length, message: fault.message } : { from: 0, to: text.split('\n')[0]?.length ?? 1, message: fault.message })
    }
  }
  return marks
}

export function placesOfAnswer(side: 'graphql' | 'rest', text: string, answer: Answer): Mark[] {
  if (side === 'graphql') return inGraphql(text, answer)
  if (answer.status < 400) return []
  return inRest(text, answer.json?.errors ?? [{ message: answer.json?.detail ?? String(answer.status) }])
}

export function placesOfRefusal(side: 'graphql' | 'rest', text: string, refused: NonNullable<Twin['refused']>): Mark[] {
  const faults = refused.faults ?? []
  if (side === 'rest') return inRest(text, faults)
  return faults.flatMap((fault) => {
    if (fault.location) {
      const from = offset(text, fault.location.line, fault.location.column)
      return [{ from, to: wordAt(text, from), message: fault.message }]
    }
    const mark = byPath(text, (fault.pointer ?? '').split('/').filter(Boolean))
    return mark ? [{ ...mark, message: fault.message }] : []
  })
}
