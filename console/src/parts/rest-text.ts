/** A REST request as text, and back.
 *
 *     PATCH /orders/1
 *     If-Match: "3"
 *
 *     {"status": "paid"}
 */
import type { RestRequest, Twin } from '../types'

export interface Parsed {
  method: string
  url: string
  headers: Record<string, string>
  body: string
  /** Where the body begins in the text. */
  bodyAt: number
}

const READABLE: Record<string, string> = { '%5B': '[', '%5D': ']', '%7B': '{', '%7D': '}', '%22': '"', '%2C': ',', '%3A': ':', '%28': '(', '%29': ')', '%3B': ';', '%2F': '/', '%24': '$', '%3D': '=', '%2A': '*', '%40': '@' }

export const readable = (url: string) => url.replace(/%[0-9A-Fa-f]{2}/g, (code) => READABLE[code.toUpperCase()] ?? code)

/** What a URL may not contain is percent-encoded; what was encoded stays. */
export const encoded = (url: string) => url.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]/gu, (character) => encodeURIComponent(character))

export function print(requests: Twin['rest'], withHeaders = true): string {
  return requests.map((each) => (each.none !== undefined ? `# ${each.none}` : printOne(each as RestRequest, withHeaders))).join('\n\n###\n\n')
}

function printOne(request: RestRequest, withHeaders: boolean): string {
  const lines = [...(request.note ? [`# ${request.note}`] : []), `${request.method} ${readable(request.url)}`]
  if (withHeaders) for (const [name, value] of Object.entries(request.headers ?? {})) lines.push(`${name}: ${value}`)
  if (request.body !== undefined && request.body !== null) {
    lines.push('', typeof request.body === 'string' ? request.body : JSON.stringify(request.body, null, 2))
  }
  return lines.join('\n')
}

/** The first request of a text; null where there is none. */
export function parse(text: string): Parsed | null {
  const begin = /^(?!#)\S/m.exec(text)?.index
  if (begin === undefined) return null
  const rest = text.slice(begin)
  const end = /^###/m.exec(rest)?.index ?? rest.length
  const own = rest.slice(0, end)
  const blank = /\n[ \t]*\n/.exec(own)
  const head = (blank ? own.slice(0, blank.index) : own).split('\n')
  const bodyAt = blank ? begin + blank.index + blank[0].length : text.length
  const body = blank ? own.slice(blank.index + blank[0].length).trimEnd() : ''
  const first = head[0]?.trim() ?? ''
  const match = /^([A-Z]+)\s+(\S.*)$/.exec(first)
  const headers: Record<string, string> = {}
  let url = match?.[2] ?? first
  for (const line of head.slice(1)) {
    const found = /^([\w-]+):\s*(.*)$/.exec(line.trim())
    if (found?.[1] && !line.startsWith(' ')) headers[found[1].toLowerCase()] = found[2] ?? ''
    else url += line.trim()
  }
  return { method: match?.[1] ?? 'GET', url: encoded(url), headers, body, bodyAt }
}

/** Where a JSON pointer leads in a text of JSON: the place of the value. */
export function placeOf(text: string, pointer: string): { from: number; to: number } | null {
  const wanted = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  let at = 0
  const space = () => {
    while (/\s/.test(text[at] ?? '')) at++
  }
  const string = () => {
    const from = at++
    while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    at++
    return text.slice(from, at)
  }
  const value = (path: string[] | null): { from: number; to: number } | null => {
    space()
    const from = at
    let found: { from: number; to: number } | null = null
    const open = text[at]
    if (open === '{' || open === '[') {
      at++
      let n = 0
      for (space(); at < text.length && !/[}\]]/.test(text[at] ?? ''); space()) {
        let name = String(n++)
        if (open === '{') {
          if (text[at] !== '"') return null
          name = JSON.parse(string()) as string
          space()
          at++
        }
        const inner = path?.length && path[0] === name ? path.slice(1) : null
        found = value(inner) ?? found
        space()
        if (text[at] === ',') at++
      }
      at++
    } else if (open === '"') string()
    else while (at < text.length && !/[,}\]\s]/.test(text[at] ?? '')) at++
    return path && !path.length ? { from, to: at } : found
  }
  try {
    return value(wanted)
  } catch {
    return null
  }
}
