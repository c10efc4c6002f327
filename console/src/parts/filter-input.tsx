/** The filter of a column, under its head: a choice of values, or a text with an operator. */
import { useEffect, useState } from 'preact/hooks'
import { setQuery } from '../router'
import type { Field } from '../types'
import { isNumeric } from './columns'
import { targetOf } from './field-input'

export function FilterInput({ field, value, first }: { field: Field; value: string; first: boolean }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = (next: string) => setQuery({ [`f.${field.name}`]: next, after: null })
  const hook = first ? { 'data-filter': '' } : {}
  const values = field.kind === 'list' ? [] : field.scalar === 'Boolean' ? ['true', 'false'] : (field.values ?? [])
  if (!field.filter?.length && !field.relation) return null
  if (values.length) {
    return (
      <select {...hook} aria-label={`Filter ${field.name}`} value={text} onChange={(event) => apply(event.currentTarget.value)}>
        <option value="">all</option>
        {values.map((each) => (
          <option key={each}>{each}</option>
        ))}
        {field.nullable && <option>null</option>}
      </select>
    )
  }
  const hint = isNumeric(field) ? '>= 10' : field.scalar === 'DateTime' || field.scalar === 'Date' ? '2026-01-31' : field.relation ? `${targetOf(field)?.label ?? 'id'}…` : ''
  return (
    <input
      {...hook}
      type="text"
      aria-label={`Filter ${field.name}`}
      placeholder={hint}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') apply(text)
        if (event.key === 'Escape') {
          setText('')
          apply('')
        }
      }}
      onBlur={() => text !== value && apply(text)}
    />
  )
}
