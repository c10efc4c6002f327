/** Values of fields: shown, typed and picked. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { ask } from '../api'
import { collection, resourceNamed, shared } from '../shell'
import type { Argument, Field, Resource, Row } from '../types'
import { moment, short } from '../words'
import { labelOf } from './columns'
import { RowLink } from './row-link'

/** A value as people read it; a related row is a link with its label. */
export function Value({ field, value, resource }: { field: Field; value: unknown; resource?: Resource | undefined }) {
  if (value === null || value === undefined) return <span class="null">null</span>
  if (field.relation) {
    const row = value as Row
    return resource ? <RowLink row={row} resource={resource} /> : <>{labelOf(row, resource)}</>
  }
  if (field.states || field.kind === 'enum') return <span class="badge accent">{String(value)}</span>
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>
  if (field.scalar === 'DateTime') return <time dateTime={String(value)} title={String(value)}>{moment(String(value))}</time>
  return <>{typeof value === 'object' ? JSON.stringify(value) : String(value)}</>
}

export interface InputProps {
  field: Field | Argument
  text: string
  onText: (text: string) => void
  id?: string
  label?: string
  invalid?: boolean
  describedBy?: string
  focus?: boolean
  small?: boolean
  onKeyDown?: (event: KeyboardEvent) => void
  onBlur?: () => void
}

/** An input by the type of a field: choices, dates, numbers, long texts, JSON. */
export function FieldInput({ field, text, onText, id, label, invalid, describedBy, focus, small, onKeyDown, onBlur }: InputProps) {
  const element = useRef<HTMLElement | null>(null)
  useEffect(() => {
    if (focus) element.current?.focus()
  }, [])
  const common = {
    id,
    'aria-label': label,
    'aria-invalid': invalid || undefined,
    'aria-describedby': describedBy,
    onKeyDown,
    onBlur,
    ref: (each: HTMLElement | null) => {
      element.current = each
    },
  }
  const values = field.kind === 'list' ? [] : field.scalar === 'Boolean' ? ['true', 'false'] : (field.values ?? [])
  if (values.length) {
    return (
      <select {...common} value={text} onChange={(event) => onText(event.currentTarget.value)}>
        <option value="">{field.nullable ? 'null' : '–'}</option>
        {values.map((each) => (
          <option key={each} value={each}>
            {field.scalar === 'Boolean' ? (each === 'true' ? 'yes' : 'no') : each}
          </option>
        ))}
      </select>
    )
  }
  const long = field.kind === 'json' || field.kind === 'value' || (field.scalar === 'String' && (text.includes('\n') || text.length > 80))
  if (long && !small) return <textarea {...common} value={text} spellcheck={false} onInput={(event) => onText(event.currentTarget.value)} />
  const mode = /^(Int|BigInt)/.test(field.type) ? 'numeric' : /^(Decimal|Float)/.test(field.type) ? 'decimal' : undefined
  const hint = field.kind === 'list' ? '["…"]' : field.scalar === 'DateTime' ? '2026-01-31T12:00:00Z' : ''
  const typed = (event: { currentTarget: HTMLInputElement }) => onText(event.currentTarget.value)
  if (field.scalar === 'Date' && field.kind !== 'list') return <input {...common} type="date" value={text} onInput={typed} />
  return <input {...common} type="text" inputMode={mode} placeholder={hint} value={text} autocomplete="off" onInput={typed} />
}

/** Finds a row by its label: type, choose. */
export function Picker({ target, chosen, onPick, label, id, invalid }: { target: Resource; chosen: Row | null; onPick: (row: Row | null) => void; label?: string; id?: string; invalid?: boolean }) {
  const list = useId()
  const [text, setText] = useState<string | null>(null)
  const [found, setFound] = useState<Row[]>([])
  const [at, setAt] = useState(0)
  const field = target.fields.find((each) => each.name === target.label)
  useEffect(() => {
    if (text === null) return setFound([])
    const stop = new AbortController()
    const later = setTimeout(() => {
      const query = new URLSearchParams({ first: '8', fields: ['id', 'version', target.label].filter(Boolean).join(',') })
      const wanted = text.trim()
      if (wanted && field?.filter?.includes('icontains')) query.set(`${field.name}[icontains]`, wanted)
      else if (wanted) query.set('id', wanted)
      if (field?.sort) query.set('sort', field.name)
      ask<{ data: Row[] }>('GET', `${collection(target)}?${query}`, { signal: stop.signal }).then(
        (page) => (setFound(page.data), setAt(0)),
        () => setFound([]),
      )
    }, 150)
    return () => {
      clearTimeout(later)
      stop.abort()
    }
  }, [text])
  const pick = (row: Row | undefined) => {
    if (row) onPick(row)
    setText(null)
  }
  const keys = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step) {
      event.preventDefault()
      if (text === null) setText('')
      else if (found.length) setAt((at + step + found.length) % found.length)
    } else if (event.key === 'Enter' && text !== null) {
      event.preventDefault()
      pick(found[at])
    } else if (event.key === 'Escape' && text !== null) {
      event.stopPropagation()
      event.preventDefault()
      setText(null)
    }
  }
  return (
    <div class="picker">
      <div class="row">
        <input
          id={id}
          class="grow"
          role="combobox"
          aria-label={label}
          aria-expanded={text !== null && found.length > 0}
          aria-controls={list}
          aria-invalid={invalid || undefined}
          autocomplete="off"
          placeholder={`Find ${target.many} by ${target.label ?? 'id'}`}
          value={text ?? (chosen ? labelOf(chosen, target) : '')}
          onFocus={(event) => event.currentTarget.select()}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={keys}
          onBlur={() => setTimeout(() => setText(null), 150)}
        />
        {chosen && (
          <button type="button" class="quiet" onClick={() => onPick(null)}>
            Clear
          </button>
        )}
      </div>
      {text !== null && found.length > 0 && (
        <ul id={list} role="listbox" aria-label={target.many}>
          {found.map((row, n) => (
            <li key={row.id} role="option" aria-selected={n === at} onMouseDown={(event) => (event.preventDefault(), pick(row))} onMouseMove={() => setAt(n)}>
              <span>{labelOf(row, target)}</span>
              <span class="soft mono">{short(row.id)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

export const targetOf = (field: Field): Resource | undefined => {
  const model = shared.get().model
  return model && field.relation ? resourceNamed(model, field.relation.to) : undefined
}
