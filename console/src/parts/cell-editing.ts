/** Editing one cell of a table in place: Enter saves, Escape gives up, Tab saves and goes on. */
import { useRef, useState } from 'preact/hooks'
import { shared } from '../shell'
import { useStore } from '../store'
import type { Field, Resource, Row } from '../types'
import { canEdit, keyOf, readInput, writeInput } from './columns'
import type { Conflict } from './merge'
import { save, sentence } from './saving'
import { say } from './ui'

export interface Edit {
  base: Row
  field: Field
  text: string
  picked: Row | null
  problem: string
}

const STEPS: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }

export function useCellEditing(resource: Resource, columns: Field[], rows: Row[], onRow: (row: Row) => void) {
  const { model } = useStore(shared)
  const [edit, setEdit] = useState<Edit | null>(null)
  const [conflict, setConflict] = useState<Conflict | null>(null)
  const body = useRef<HTMLTableSectionElement>(null)
  const begin = (row: Row, field: Field) => {
    if (!canEdit(resource, field)) return say(`${field.name} cannot be changed by your role.`)
    setEdit({ base: row, field, text: writeInput(row[field.name]), picked: (field.relation ? (row[field.name] as Row | null) : null) ?? null, problem: '' })
  }
  const finish = async (now: Edit, change: Record<string, unknown>, base = now.base): Promise<boolean> => {
    if (!model) return false
    const saved = await save(resource, model, base, change)
    if (saved.kind === 'conflict') {
      setConflict(saved.conflict)
      return false
    }
    if (saved.kind === 'refused') {
      setEdit({ ...now, problem: sentence(saved.failure) })
      return false
    }
    onRow(saved.row)
    setEdit(null)
    setConflict(null)
    say(`Saved as version ${saved.row.version}.`)
    return true
  }
  const commit = async (now: Edit): Promise<boolean> => {
    const key = now.field.relation ? keyOf(resource, now.field) : now.field
    if (!key) return false
    try {
      const value = now.field.relation ? (now.picked?.id ?? null) : readInput(now.field, now.text)
      const old = now.field.relation ? ((now.base[now.field.name] as Row | null)?.id ?? null) : now.base[now.field.name]
      if (JSON.stringify(value) === JSON.stringify(old ?? null)) {
        setEdit(null)
        return true
      }
      return await finish(now, { [key.name]: value })
    } catch (error) {
      setEdit({ ...now, problem: (error as Error).message })
      return false
    }
  }
  const cellAt = (row: number, column: number) => body.current?.rows[row]?.cells[column] as HTMLElement | undefined
  const move = (event: KeyboardEvent, r: number, c: number) => {
    const step = STEPS[event.key]
    if (step && !edit) {
      event.preventDefault()
      cellAt(r + step[0], c + step[1])?.focus()
    }
    const [row, field] = [rows[r], columns[c - 1]]
    if ((event.key === 'Enter' || event.key === 'F2') && !edit && row && field && event.target === event.currentTarget) {
      event.preventDefault()
      begin(row, field)
    }
  }
  const editKeys = (event: KeyboardEvent, now: Edit, r: number, c: number) => {
    if (event.key === 'Escape') {
      event.preventDefault()
      setEdit(null)
      requestAnimationFrame(() => cellAt(r, c)?.focus())
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault()
      event.stopPropagation()
      void commit(now).then((done) => done && requestAnimationFrame(() => cellAt(r, c)?.focus()))
    } else if (event.key === 'Tab') {
      event.preventDefault()
      const step = event.shiftKey ? -1 : 1
      void commit(now).then((done) => {
        if (!done) return
        let next = c - 1 + step
        while (columns[next] && !canEdit(resource, columns[next] as Field)) next += step
        const [row, field] = [rows[r], columns[next]]
        if (row && field) begin(row, field)
        else cellAt(r, c)?.focus()
      })
    }
  }
  const close = () => {
    setEdit(null)
    setConflict(null)
  }
  /** Save what was chosen of both versions, or take theirs. */
  const merge = (change: Record<string, unknown>) => {
    if (!edit || !conflict) return
    if (Object.keys(change).length) void finish(edit, change, conflict.theirs)
    else {
      onRow(conflict.theirs)
      close()
    }
  }
  return { body, edit, setEdit, conflict, keepEditing: () => setConflict(null), begin, commit, move, editKeys, merge }
}

export type CellEditing = ReturnType<typeof useCellEditing>
