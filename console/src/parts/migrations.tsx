/** Admin: which migrations the database has, and what is not as they say. */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api'
import { moment } from '../words'
import { Empty, Loading } from './ui'

interface Status {
  migrations: { name: string; state: string; at: string }[]
  differences: string[]
  modelDiffers: boolean
}

const STATES: Record<string, { kind: string; words: string }> = {
  applied: { kind: 'good', words: 'applied' },
  expanded: { kind: 'warn', words: 'expanded, not contracted' },
  begun: { kind: 'warn', words: 'begun' },
  pending: { kind: 'accent', words: 'pending' },
  edited: { kind: 'bad', words: 'edited after it was applied' },
  missing: { kind: 'bad', words: 'applied, and its file is missing' },
  unknown: { kind: '', words: 'unknown: the database has no log' },
}

export function Migrations({ refused }: { refused: (error: unknown) => void }) {
  const [status, setStatus] = useState<Status | null>(null)
  useEffect(() => void ask<Status>('GET', '/console/api/admin/migrations').then(setStatus, refused), [])
  if (!status) return <Loading />
  return (
    <div class="form">
      <p class="soft">Files in the folder migrations, beside the model. They are applied by commands, never from here.</p>
      <Remarks status={status} />
      {status.migrations.length === 0 ? (
        <Empty title="This project has no migrations yet">
          <p>
            <code>diptych migrate make</code> writes the first.
          </p>
        </Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Migrations">
          <table class="grid">
            <thead>
              <tr>
                {['migration', 'state', 'applied at'].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {status.migrations.map(({ name, state, at }) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td>
                    <span class={`badge ${STATES[state]?.kind ?? ''}`}>{STATES[state]?.words ?? state}</span>
                  </td>
                  <td>{at ? moment(at) : ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  )
}

/** What there is to do, with the command that does it. */
function Remarks({ status }: { status: Status }) {
  const waits = status.migrations.some(({ state }) => state === 'pending' || state === 'begun' || state === 'expanded')
  return (
    <>
      {status.modelDiffers && (
        <p class="notice">
          <span>The model has changes that no migration has.</span> <code>diptych migrate make</code>
        </p>
      )}
      {waits && (
        <p class="notice">
          <span>The database lacks migrations.</span> <code>diptych migrate apply</code>
        </p>
      )}
      {status.differences.length > 0 && (
        <div class="notice">
          <div>
            <strong>The tables are not as the last migration leaves them:</strong>
            <ul>
              {status.differences.map((each) => (
                <li key={each}>{each}</li>
              ))}
            </ul>
          </div>
        </div>
      )}
    </>
  )
}
