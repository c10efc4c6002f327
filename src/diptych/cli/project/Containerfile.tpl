# podman build -t tasks .    (or docker build -f Containerfile -t tasks .)
# Needs a wheel of Diptych beside it: pip wheel --no-deps -w . diptych
FROM python:3.13-slim

WORKDIR /app
COPY diptych-*.whl ./
RUN pip install --no-cache-dir ./diptych-*.whl && rm diptych-*.whl
COPY tasks.py ./
COPY migrations ./migrations

RUN useradd --system --uid 10001 app && mkdir /data && chown app /data
USER app
VOLUME /data

ENV DIPTYCH_MODEL=tasks:model \
    DIPTYCH_DATABASE=sqlite:////data/tasks.db \
    DIPTYCH_HOST=0.0.0.0 \
    DIPTYCH_PORT=8000 \
    DIPTYCH_LOG_FORMAT=json
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/ready')"]
CMD ["sh", "-c", "diptych migrate apply && exec diptych serve"]
