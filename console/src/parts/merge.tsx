/** Someone else changed the row meanwhile: both values, field by field, and the choice between them. */
import { useState } from 'preact/hooks'
import type { Field, Resource, Row } from '../types'
import { writeInput } from './columns'
import { Dialog } from './ui'

export interface Conflict {
  /** The row as it was when the edit began. */
  base: Row
  theirs: Row
  /** What was typed, by field of the body. */
  mine: Record<string, unknown>
}

const same = (a: unknown, b: unknown) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

export function Merge({ resource, conflict, onSave, onClose }: { resource: Resource; conflict: Conflict; onSave: (change: Record<string, unknown>) => void; onClose: () => void }) {
  const { base, theirs, mine } = conflict
  const names = resource.fields.filter((field: Field) => !field.relation && (field.name in mine || (!same(base[field.name], theirs[field.name]) && !['version', 'updatedAt'].includes(field.name)))).map((field) => field.name)
  const [own, setOwn] = useState<Record<string, boolean>>(() => Object.fromEntries(Object.keys(mine).map((name) => [name, true])))
  const save = () => onSave(Object.fromEntries(Object.entries(mine).filter(([name]) => own[name])))
  return (
    <Dialog title="Someone else changed this row" onClose={onClose} wide>
      <p>
        It is version {String(theirs.version)} now; you began with version {String(base.version)}. Nothing is lost: choose what to keep, field by field.
      </p>
      <table class="merge">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">Theirs</th>
            <th scope="col">Yours</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="soft">{writeInput(base[name]) || 'null'}</td>
              <td>
                {name in mine ? (
                  <label>
                    <input type="radio" name={`merge-${name}`} checked={!own[name]} onChange={() => setOwn({ ...own, [name]: false })} />
                    <span>{writeInput(theirs[name]) || 'null'}</span>
                  </label>
                ) : (
                  <span>{writeInput(theirs[name]) || 'null'}</span>
                )}
              </td>
              <td>
                {name in mine ? (
                  <label>
                    <input type="radio" name={`merge-${name}`} checked={Boolean(own[name])} onChange={() => setOwn({ ...own, [name]: true })} />
                    <span>{writeInput(mine[name]) || 'null'}</span>
                  </label>
                ) : (
                  <span class="soft">not changed</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="dialog-foot">
        <button onClick={onClose}>Keep typing</button>
        <button class="strong" onClick={save}>
          Save the choice
        </button>
      </div>
    </Dialog>
  )
}
