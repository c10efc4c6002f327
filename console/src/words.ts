/** Numbers, times and names as people read them. */

export const bytes = (n: number) => (n < 1000 ? `${n} B` : n < 1_000_000 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1_000_000).toFixed(1)} MB`)

export const milliseconds = (n: number) => (n < 10 ? `${n.toFixed(1)} ms` : n < 10_000 ? `${Math.round(n)} ms` : `${(n / 1000).toFixed(1)} s`)

export const count = (n: number, one: string, many = `${one}s`) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

/** A moment in the reader's own time. */
export function moment(text: string): string {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) return text
  const pad = (n: number) => String(n).padStart(2, '0')
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}`
}

/** The time of a text, of milliseconds, or of Unix seconds. */
export function timeOfDay(text: string | number): string {
  const date = new Date(typeof text === 'number' && text < 1e11 ? text * 1000 : text)
  return Number.isNaN(date.getTime()) ? String(text) : date.toTimeString().slice(0, 8)
}

/** `customerId` → `customer id`. */
export const spoken = (name: string) => name.replace(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()

export const short = (id: string) => (id.length > 12 ? `…${id.slice(-6)}` : id)

export const fileLine = (rule: { file?: string | null | undefined; line?: number | null | undefined }) =>
  rule.file ? `${rule.file}${rule.line ? `:${rule.line}` : ''}` : ''
