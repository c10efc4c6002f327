/** A first visit without data: declare, create, ask. */
import { to } from '../router'
import { shared, slug } from '../shell'
import { useStore } from '../store'
import { openPeople } from './view-as'

export function Start() {
  const { boot, model } = useStore(shared)
  const first = model?.resources.find((resource) => resource.verbs.create)
  return (
    <div class="empty">
      <h2>Three steps to a first answer</h2>
      <ol class="steps">
        <li>
          <span class="number">1</span>
          <h2>Declare</h2>
          {model?.resources.length ? (
            <p>
              Done: the model has {model.resources.length} resources. <a href={to('model')}>See them</a>, and change the model file at any time; <code>diptych dev</code> reloads it.
            </p>
          ) : (
            <p>
              You see no resource. If the model has none yet, write a class for each kind of row: <code>diptych dev</code> reloads it when you save. If it has, its rules show you none; the page{' '}
              <a href={to('rules')}>Rules</a> has them all.
            </p>
          )}
        </li>
        <li>
          <span class="number">2</span>
          <h2>Create</h2>
          {first ? (
            <p>
              <a href={to(`data/${slug(first)}?new=1`)}>Create the first {first.one}</a>, or import a CSV file on its page.
            </p>
          ) : (
            <p>
              You may not create rows.{' '}
              {boot?.mode === 'dev' ? (
                <button class="quiet" onClick={openPeople}>
                  View as a user who may
                </button>
              ) : (
                'The model can grant it to your role.'
              )}
            </p>
          )}
        </li>
        <li>
          <span class="number">3</span>
          <h2>Ask</h2>
          <p>
            <a href={to('request')}>Ask in GraphQL or in REST</a>: write one, and the other follows.
          </p>
        </li>
      </ol>
    </div>
  )
}
