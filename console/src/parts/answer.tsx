/** The answer to a request: figures, a tree that folds, raw text, headers; or the events of a stream. */
import { useState } from 'preact/hooks'
import type { Answer, Event } from '../api'
import { bytes, milliseconds, timeOfDay } from '../words'
import { Tree } from './tree'
import { Copy, Empty, Tabs } from './ui'

export type Outcome =
  | { kind: 'none' }
  | { kind: 'waiting' }
  | { kind: 'answer'; answer: Answer; cost: string | null }
  | { kind: 'stream'; events: (Event & { at: number })[]; open: boolean }
  | { kind: 'failed'; message: string; status: number; problem: unknown }

export const errorsOf = (answer: Answer): { message: string; path?: unknown[]; extensions?: any; locations?: { line: number; column: number }[] }[] =>
  answer.status >= 400 && answer.json?.detail ? [{ message: answer.json.detail, extensions: { code: answer.json.code } }] : Array.isArray(answer.json?.errors) ? answer.json.errors : []

export function AnswerPane({ outcome, onStop }: { outcome: Outcome; onStop: () => void }) {
  const [tab, setTab] = useState('tree')
  if (outcome.kind === 'stream') return <Stream events={outcome.events} open={outcome.open} onStop={onStop} />
  return (
    <section class="panel" aria-label="Answer">
      {outcome.kind === 'answer' ? (
        <Tabs
          label="Answer"
          at={tab}
          onChange={setTab}
          tabs={[
            { id: 'tree', title: 'Answer' },
            { id: 'raw', title: 'Raw' },
            { id: 'headers', title: `Headers` },
          ]}
          tools={<Figures answer={outcome.answer} cost={outcome.cost} />}
        >
          {tab === 'tree' && <Body answer={outcome.answer} />}
          {tab === 'raw' && <pre class="mono">{outcome.answer.text || 'No body.'}</pre>}
          {tab === 'headers' && <Headers answer={outcome.answer} />}
        </Tabs>
      ) : (
        <>
          <div class="panel-head">
            <h2>Answer</h2>
          </div>
          {outcome.kind === 'failed' ? (
            <div class="panel-body">
              <p class="bad">
                {outcome.status || ''} {outcome.message}
              </p>
              {outcome.problem ? <Tree value={outcome.problem} /> : null}
            </div>
          ) : outcome.kind === 'waiting' ? (
            <p class="loading">
              <span class="spinner" aria-hidden="true" /> Waiting for the answer…
            </p>
          ) : (
            <Empty title="Nothing sent yet">
              <p>
                Write in either leaf, and press <kbd>Ctrl Enter</kbd>. The other leaf shows the same request in the other style.
              </p>
            </Empty>
          )}
        </>
      )}
    </section>
  )
}

function Figures({ answer, cost }: { answer: Answer; cost: string | null }) {
  const failed = answer.status >= 400 || errorsOf(answer).length > 0
  return (
    <div class="figures" role="status">
      <span class={failed ? 'badge bad' : 'badge good'}>{answer.status}</span>
      <span>{milliseconds(answer.ms)}</span>
      <span>{bytes(answer.bytes)}</span>
      {cost && <span>price {cost}</span>}
      <Copy text={answer.json === null ? answer.text : JSON.stringify(answer.json, null, 2)} />
    </div>
  )
}

function Body({ answer }: { answer: Answer }) {
  const errors = errorsOf(answer)
  return (
    <>
      {errors.map((error, n) => (
        <p key={n} class="bad">
          {error.extensions?.code && <strong>{error.extensions.code} </strong>}
          {error.message}
          {error.path?.length ? <span class="soft"> at {error.path.join('.')}</span> : null}
        </p>
      ))}
      {answer.json !== null ? <Tree value={answer.json} /> : answer.text ? <pre>{answer.text}</pre> : <p class="soft">No body: the status says it all.</p>}
    </>
  )
}

function Headers({ answer }: { answer: Answer }) {
  return (
    <table class="headers-table">
      <tbody>
        {answer.headers.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Stream({ events, open, onStop }: { events: (Event & { at: number })[]; open: boolean; onStop: () => void }) {
  return (
    <section class="panel" aria-label="Answer">
      <div class="panel-head">
        <h2 class="grow">Stream</h2>
        <span class={open ? 'badge good' : 'badge'}>{open ? 'open' : 'ended'}</span>
        <span class="soft">{events.length} events</span>
        {open && <button onClick={onStop}>Stop</button>}
      </div>
      <div class="answer-body stream-list" tabIndex={0} role="log" aria-label="Events">
        {!events.length && <p class="soft">{open ? 'Waiting for a change. Change a row on the page Data, in another tab.' : 'Nothing came.'}</p>}
        {events.map((event) => (
          <div key={event.id + event.at}>
            <span class="soft">{timeOfDay(event.at)}</span>
            <Tree value={event.data} />
          </div>
        ))}
      </div>
    </section>
  )
}
